"""Metrics of answers against reference answers, as in SAGE, section VII.

All are in [0, 1] and higher is better. A question with several references counts the best one. ROUGE
is computed by rouge-score, BLEU by sacrebleu and METEOR by NLTK (extra `eval`).
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import InputError, MissingExtra
from precise_rag.types import FloatArray

_PUNCTUATION = frozenset(string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalize_answer(text: str) -> str:
    """Return `text` in lower case without punctuation, English articles and extra space.

    Source: the SQuAD 1.1 evaluation.
    """
    text = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def accuracy(prediction: str | int | None, references: Sequence[str | int]) -> float:
    """Return 1.0 if the prediction equals one of the references, else 0.0; for options and labels."""
    return float(prediction in _required(references))


def exact_match(prediction: str, references: Sequence[str]) -> float:
    """Return 1.0 if the normalised prediction equals a normalised reference, else 0.0."""
    answer = normalize_answer(prediction)
    return float(any(answer == normalize_answer(reference) for reference in _required(references)))


def f1_match(prediction: str, references: Sequence[str]) -> float:
    """Compute the F1 of the normalised words shared with the best reference.

    If either side has no words after normalisation, returns 1.0 if both have none, else 0.0.
    Source: SAGE's F1-Match, which is SQuAD's F1.
    """
    return max(
        _f1(normalize_answer(prediction).split(), normalize_answer(r).split()) for r in _required(references)
    )


def rouge_l(prediction: str, references: Sequence[str]) -> float:
    """Compute ROUGE-L: the F-measure of the longest common subsequence of stemmed words."""
    scored = _rouge_scorer().score_multi(list(_required(references)), prediction)
    return float(scored["rougeL"].fmeasure)


def bleu(prediction: str, references: Sequence[str], *, order: int = 4) -> float:
    """Compute sentence BLEU with n-grams up to `order`, in lower case, with 13a tokens.

    Zero counts are smoothed exponentially, as is sacrebleu's default. An answer shorter than `order`
    words is scored on the n-grams that it has. Papers report `corpus_bleu`, which is not the mean of
    sentence BLEU.
    """
    scorer = _bleu(order, effective_order=True)
    return float(scorer.sentence_score(prediction, list(_required(references))).score) / 100


def corpus_bleu(predictions: Sequence[str], references: Sequence[Sequence[str]], *, order: int = 4) -> float:
    """Compute corpus BLEU with n-grams up to `order`, in lower case, with 13a tokens."""
    _check_lengths(predictions, references)
    width = max((len(_required(row)) for row in references), default=0)
    streams = [[row[n] if n < len(row) else None for row in references] for n in range(width)]
    return float(_bleu(order).corpus_score(list(predictions), streams).score) / 100


def meteor(prediction: str, references: Sequence[str], *, wordnet: Any = None) -> float:
    """Compute METEOR on lower-case words, with exact, stem and WordNet synonym matches.

    wordnet: an object with the `synsets` method of NLTK's corpus reader; default: that reader.

    Raises MissingExtra if NLTK's WordNet data is not installed. Nothing is downloaded.
    """
    score = require("nltk.translate.meteor_score", extra="eval").meteor_score
    words = [_words(reference) for reference in _required(references)]
    return float(score(words, _words(prediction), wordnet=_nltk_wordnet() if wordnet is None else wordnet))


METRICS: Mapping[str, Callable[[str, Sequence[str]], float]] = {
    "EM": exact_match,
    "F1": f1_match,
    "ROUGE-L": rouge_l,
    "BLEU-1": lambda prediction, references: bleu(prediction, references, order=1),
    "BLEU-4": lambda prediction, references: bleu(prediction, references, order=4),
    "METEOR": meteor,
}
"""Names of metrics to functions of a prediction and its references."""


def score_answers(
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = ("EM", "F1", "ROUGE-L"),
) -> dict[str, FloatArray]:
    """Compute metrics of many answers.

    predictions: n answers.
    references: the reference answers of each, at least one.
    metrics: names in `METRICS`.

    Returns names to (n,) float32 scores. Raises InputError for an unknown metric, different lengths and
    a question without references.
    """
    _check_lengths(predictions, references)
    unknown = sorted(set(metrics) - METRICS.keys())
    if unknown:
        raise InputError(f"metrics must be among {', '.join(METRICS)}, got {', '.join(unknown)}")
    pairs = list(zip(predictions, references, strict=True))
    return {name: np.array([METRICS[name](*pair) for pair in pairs], np.float32) for name in metrics}


def _f1(answer: Sequence[str], reference: Sequence[str]) -> float:
    if not answer or not reference:
        return float(answer == reference)
    shared = sum((Counter(answer) & Counter(reference)).values())
    return 2 * shared / (len(answer) + len(reference))


def _required(references: Sequence[Any]) -> Sequence[Any]:
    if isinstance(references, str) or not references:
        raise InputError(f"references must be a list of at least one answer, got {references!r}")
    return references


def _check_lengths(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if len(predictions) != len(references):
        raise InputError(
            "each prediction needs its references, "
            f"got {len(predictions)} predictions and {len(references)} sets of references"
        )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text.lower())


@cache
def _rouge_scorer() -> Any:
    return require("rouge_score.rouge_scorer", extra="eval").RougeScorer(["rougeL"], use_stemmer=True)


@cache
def _bleu(order: int, *, effective_order: bool = False) -> Any:
    bleu_metric = require("sacrebleu.metrics", extra="eval").BLEU
    return bleu_metric(max_ngram_order=order, lowercase=True, effective_order=effective_order)


@cache
def _nltk_wordnet() -> Any:
    wordnet = require("nltk.corpus", extra="eval").wordnet
    try:
        wordnet.ensure_loaded()
    except LookupError as error:
        raise MissingExtra(
            "METEOR needs NLTK's WordNet data, which is not installed; "
            "run: python -m nltk.downloader wordnet (or set NLTK_DATA to a folder "
            "that has corpora/wordnet), or leave METEOR out"
        ) from error
    return wordnet
