"""The packaged reader: where in a text the answer to a question begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from precise_rag._arguments import with_option_words
from precise_rag._extras import require
from precise_rag._pickling import Shared
from precise_rag._processes import PerProcess, native_work
from precise_rag.checkpoints.checks import check_config, numbers, whole
from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint
from precise_rag.checks import check_number
from precise_rag.encoders.devices import runs_on_onnx
from precise_rag.encoders.int8_layers import Precision
from precise_rag.encoders.load import minilm_encoder
from precise_rag.errors import InputError
from precise_rag.models.packaged import packaged_model
from precise_rag.reading.columns import reading_columns
from precise_rag.reading.spans import BestSpan, Window, windows
from precise_rag.rerank import load_reranker, rerank
from precise_rag.rerank.logistic_regression import LogisticRegression
from precise_rag.rerank.pair_onnx import OnnxSpanScorer
from precise_rag.rerank.pairs import WIDTH, TransformerConfig, check_trained
from precise_rag.rerank.script import mostly_latin
from precise_rag.rerank.text_around import text_around
from precise_rag.sentences import split_sentences
from precise_rag.tokens import readable_texts
from precise_rag.types import (
    Candidate,
    Excerpt,
    ExtractedAnswer,
    FloatArray,
    Reading,
    Selection,
    Span,
    check_query,
)

if TYPE_CHECKING:
    from precise_rag.rerank.pair_network import SpanScorer

_FOLDER = packaged_model("reader")

_COLUMNS = ("margin", "covered", "named")

_RULES = {
    "n_layers": whole(1, 6),
    "n_apart": whole(0, 6),
    "answer": numbers(("margin", "prior", "offset")),
    "answered": numbers((*_COLUMNS, "best", "offset")),
    "answered_alone": numbers((*_COLUMNS, "offset")),
}

_MOST_WINDOWS = 8
"""Windows of 256 tokens that are read for a question, at most: those of the first texts."""


@with_option_words
class AnswerReader(Shared):
    """Finds the words that answer a question, with a small network that reads the question and a text.

    folder: a saved model; default: the one in the package.
    min_score: lowest probability of an answer; less probable ones are left out.
    device: where the network runs, such as "cpu"; default: a GPU if torch can use one.
    precision: of its linear layers on a CPU, "float32" or "int8".

    It reads English. Texts and questions that are mostly in another script than Latin are not read, nor
    most texts in another language.
    The network is loaded at its first use. Raises MissingExtra without torch on a GPU, ModelError if the
    weights are damaged.
    """

    def __init__(
        self,
        folder: str | Path = _FOLDER,
        *,
        min_score: float = 0.1,
        device: str | None = None,
        precision: Precision = "int8",
    ) -> None:
        check_number("min_score", min_score, least=0, most=1)
        self._config, self._tensors = load_checkpoint(folder)
        check_config(folder, self._config, _RULES)
        check_config(folder, self._config, {"n_apart": whole(0, self._config["n_layers"])})
        n_together = self._config["n_layers"] - self._config["n_apart"]
        check_trained(folder, self._tensors, n_together, (2, WIDTH), 2)
        self._of_answer, self._answered, self._answered_alone = (
            LogisticRegression(self._config[name]) for name in ("answer", "answered", "answered_alone")
        )
        self._min_score, self._device, self._precision = min_score, device, precision
        self._scorer: PerProcess[SpanScorer | OnnxSpanScorer] = PerProcess()

    def read(self, query: str, texts: Sequence[Candidate]) -> Reading:
        """Return the answers in the texts, and the probability that these answer the question.

        query: the question, not blank.
        texts: of any length, such as excerpts; scores of them and their sentences count if they are
            probabilities.
        """
        best = self.best_spans(query, texts)
        if not best:
            return Reading()
        columns = reading_columns(query, texts, best.values())
        regression = self._answered if "best" in columns else self._answered_alone
        answers = [self.answer(texts[row], one) for row, one in best.items()]
        answers.sort(key=lambda answer: -answer.probability)
        likely = tuple(answer for answer in answers if answer.probability >= self._min_score)
        return Reading(likely, float(regression(columns)))

    def answer(self, text: Candidate, best: BestSpan) -> ExtractedAnswer:
        """Return the likeliest span of a text as an answer."""
        start, end = best.span
        probability = float(self._of_answer({"margin": best.margin, "prior": best.prior}))
        place = text.start + start, text.start + end
        return ExtractedAnswer(text.doc_id, *place, text.text[start:end], probability)

    def best_spans(self, query: str, texts: Sequence[Candidate]) -> dict[int, BestSpan]:
        """Return the likeliest span of each text by its number; none of one that cannot be read."""
        if not mostly_latin(check_query(query)):
            return {}
        query, *readable = readable_texts([query, *(text.text for text in texts)])
        tokenizer = minilm_encoder().tokenizer
        given = [
            window
            for number, text in enumerate(readable)
            if mostly_latin(text)
            for window in windows(number, text, tokenizer)
        ][:_MOST_WINDOWS]
        known = [_sentences(text) for text in texts]
        best: dict[int, BestSpan] = {}
        for window, logits in zip(given, self._logits(query, given), strict=True):
            span = window.best(logits, known[window.number])
            if window.number not in best or span.score > best[window.number].score:
                best[window.number] = span
        return best

    def load_model(self) -> None:
        """Load the network now, not at the first text."""
        self._scorer.get(self._load)

    def _logits(self, query: str, given: Sequence[Window]) -> list[FloatArray]:
        if not given:
            return []
        scorer = self._scorer.get(self._load)
        with native_work(scorer.device_type):
            return scorer.logits(query, [window.ids for window in given])

    def _load(self) -> SpanScorer | OnnxSpanScorer:
        config = TransformerConfig(n_layers=self._config["n_layers"], n_apart=self._config["n_apart"])
        if runs_on_onnx(self._device):
            return OnnxSpanScorer(config, dequantized(self._tensors), self._precision)
        require("torch", extra="torch")
        from precise_rag.rerank.pair_network import SpanScorer

        with native_work(self._device):
            return SpanScorer(config, dequantized(self._tensors), self._device)


@cache
def answer_reader() -> AnswerReader:
    """Return the packaged reader, loaded once."""
    return AnswerReader()


def read_answer(
    question: str, texts: Sequence[str], reader: AnswerReader | None = None
) -> ExtractedAnswer | None:
    """Return the likeliest answer in some texts, however improbable; None if they cannot be read.

    question: not blank. texts: such as the context of one question; `doc_id` is the number of the text.
    reader: default: the packaged one.
    The default reranker says how probable each sentence is.
    """
    if isinstance(texts, str):
        raise InputError("texts must be a list of strings, got str; pass [text]")
    reader = reader or answer_reader()
    given = ranked_texts(question, texts)
    answers = [reader.answer(given[row], one) for row, one in reader.best_spans(question, given).items()]
    return max(answers, key=lambda answer: answer.probability, default=None)


def ranked_texts(question: str, texts: Sequence[str]) -> list[Excerpt]:
    """Return texts as excerpts with all their sentences, scored by the default reranker."""
    sentences = []
    for number, text in enumerate(readable_texts(texts)):
        for span in split_sentences(text):
            if (sentence := text[slice(*span)]).strip():
                before, after = text_around(text, *span)
                sentences.append(
                    Candidate(str(number), *span, sentence, 0.0, "rank", before=before, after=after)
                )
    by_text: dict[str, list[Candidate]] = {}
    for one in rerank(check_query(question), sentences, load_reranker("default")):
        by_text.setdefault(one.doc_id, []).append(one)
    excerpts = []
    for number, text in enumerate(texts):
        mine = Selection.keep_all(by_text.get(str(number), ())).decisions
        best = max((decision.candidate.score for decision in mine), default=0.0)
        excerpts.append(Excerpt(str(number), 0, len(text), text, best, "probability", sentences=mine))
    return excerpts


def _sentences(text: Candidate) -> dict[Span, float]:
    """The probabilities of the sentences of a text by their places in it, as far as they are known."""
    if text.score_scale != "probability":
        return {}
    decisions = text.sentences if isinstance(text, Excerpt) else ()
    several = [decision.candidate for decision in decisions] or [text]
    return {Span(one.start - text.start, one.end - text.start): one.score for one in several}
