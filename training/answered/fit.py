"""Fit the probabilities of the reader: of an answer, and that what is sent answers the question.

    python -m training.answered.fit OUT --network NETWORK --data DIR --cache CACHE

OUT is the folder for the model, NETWORK the `network.pt` of `training.reader.train`. CACHE keeps what the
library sends, so that a second network is fitted in a minute. The regressions are fitted to questions about
documents that the reader was not trained on, and measured on those about other documents: AUROC of questions
that are answered against such that are not, and the expected calibration error over ten bins.
"""

import hashlib
import json
import pickle
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from precise_rag.encoders import load_encoder
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.measures.answers import f1_match
from precise_rag.reading import AnswerReader
from precise_rag.reading.columns import reading_columns
from precise_rag.reading.spans import BestSpan
from precise_rag.rerank.logistic_regression import LogisticRegression
from training.answered.sent import Sent, collection, is_fitted, sent_for
from training.reader.export import FIRST, save
from training.reranker.logistic_regression import fit_logistic_regression

COLLECTIONS = {"dev/squad": 12, "train/nq": 25, "train/squadshifts": 12, "dev/covidqa": 20}
"""Documents of each collection. COVID-QA is not fitted to: it is a kind of text that is left out."""

LEFT_OUT = ("dev/covidqa",)

Spans = dict[int, BestSpan]
"""The likeliest span of each text that was read, by its number."""


def all_sent(data: str, n_questions: int) -> Iterator[Sent]:
    """Yield what is sent for questions about each collection, and for those of another one."""
    encoder = load_encoder()
    several = {name: collection(name, data, encoder, n) for name, n in COLLECTIONS.items()}
    for name, one in several.items():
        kinds = ("document known", "collection searched") if name == "dev/squad" else ("collection searched",)
        for kind in kinds:
            yield from sent_for(one, one.answered, kind, name, n_questions)
            yield from sent_for(one, one.unanswered, kind, name, n_questions)
        others = [other for other in several.values() if other is not one]
        for other in others:
            share = n_questions // len(others)
            yield from sent_for(other, one.answered, "another collection", name, share)
        print(name, flush=True)


def spans_of(sent: Sequence[Sent], reader: AnswerReader, kept: Path) -> list[Spans]:
    """Return the likeliest spans of what was sent. kept: file that keeps them, or has them already."""
    if not kept.exists():
        found = [reader.best_spans(one.question, one.excerpts) for one in sent]
        kept.write_bytes(pickle.dumps(found))
    spans: list[Spans] = pickle.loads(kept.read_bytes())
    return spans


def fitted(
    columns: Sequence[dict[str, float]], truth: Sequence[bool], names: Sequence[str], weights: Sequence[float]
) -> dict[str, float]:
    """Fit a regression over some of the columns."""
    lists = [{name: np.array([one[name]]) for name in names} for one in columns]
    return fit_logistic_regression(lists, [np.array([true]) for true in truth], list(weights))


def auroc(scores: Sequence[float], truth: Sequence[bool]) -> float:
    """Return the share of (true, false) pairs that the scores put in the right order; ties count half."""
    high = np.array([s for s, t in zip(scores, truth, strict=True) if t])
    low = np.array([s for s, t in zip(scores, truth, strict=True) if not t])
    difference = high[:, None] - low[None, :]
    return float((difference > 0).mean() + 0.5 * (difference == 0).mean()) if difference.size else np.nan


def calibration_error(probabilities: Sequence[float], truth: Sequence[bool], n_bins: int = 10) -> float:
    """Return the expected calibration error over bins of equal width."""
    p, y = np.array(probabilities), np.array(truth, dtype=float)
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    gaps = [abs(p[bins == n].sum() - y[bins == n].sum()) for n in range(n_bins)]
    return float(sum(gaps) / len(p))


def balance(sent: Sequence[Sent]) -> list[float]:
    """Return weights so that each set and way of asking counts the same."""
    keys = [(one.source, one.kind, one.answerable) for one in sent]
    return [1.0 / keys.count(key) for key in keys]


def of_answers(read: Sequence[tuple[Sent, Spans]], golds: dict[str, list[str]]) -> dict[str, float]:
    """Fit the probability that a text's likeliest span answers the question: that it shares half with one."""
    margins, truth = [], []
    for one, spans in read:
        for row, span in spans.items():
            text = one.excerpts[row].text[slice(*span.span)]
            gold = golds.get(one.question, []) if one.answerable else []
            margins.append({"margin": span.margin, "prior": span.prior})
            truth.append(bool(gold) and f1_match(text, gold) >= 0.5)
    weights = fitted(margins, truth, ("margin", "prior"), [1.0] * len(truth))
    p = LogisticRegression(weights)({name: np.array([m[name] for m in margins]) for name in margins[0]})
    print(f"answers: {len(truth)} texts, {np.mean(truth):.3f} right, AUROC {auroc(p.tolist(), truth):.3f}")
    return weights


def main() -> None:
    parser = ArgumentParser(prog="python -m training.answered.fit", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the model")
    parser.add_argument("--network", type=Path, help="default: the cache is filled, and nothing is fitted")
    parser.add_argument("--data", required=True, help="folder of the sets")
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps what is sent")
    parser.add_argument("--questions", type=int, default=110, help="of each set and kind (%(default)s)")
    options = parser.parse_args()
    kept = options.cache / f"sent-{options.questions}.pickle"
    if not kept.exists():
        options.cache.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(list(all_sent(options.data, options.questions))))
    sent: list[Sent] = pickle.loads(kept.read_bytes())
    if options.network is None:
        return
    network = torch.load(options.network, map_location="cpu")
    save(network, options.out, FIRST)
    digest = hashlib.sha256(options.network.read_bytes()).hexdigest()[:12]
    spans = spans_of(sent, AnswerReader(options.out), options.cache / f"spans-{digest}-{len(sent)}.pickle")
    read = [(one, of) for one, of in zip(sent, spans, strict=True) if of]
    columns = {one: reading_columns(one.question, one.excerpts, of.values()) for one, of in read}
    fit = [one for one in columns if one.source not in LEFT_OUT and is_fitted(one.group)]
    in_fit = set(fit)
    golds = answers_of(options.data)
    regressions = {"answer": of_answers([(one, of) for one, of in read if one in in_fit], golds)}
    for name, more in (("answered", ("best",)), ("answered_alone", ())):
        names = ("margin", "covered", "named", *more)
        truth = [one.holds for one in fit]
        regressions[name] = fitted([columns[one] for one in fit], truth, names, balance(fit))
    save(network, options.out, regressions)
    print(json.dumps(regressions, indent=1))
    for name in ("answered", "answered_alone"):
        regression = LogisticRegression(regressions[name])
        report(name, [(one, float(regression(columns[one]))) for one in columns if one not in in_fit])


def answers_of(data: str) -> dict[str, list[str]]:
    """Return the accepted answers by question: the texts of the evidence."""
    golds: dict[str, list[str]] = {}
    for name in COLLECTIONS:
        split, _, stem = name.partition("/")
        dataset = load_development_set(stem, data, split)
        texts = {document.id: document.text for document in dataset.documents}
        for question in dataset.questions:
            answers = [texts[one.doc_id][one.start : one.end] for one in question.evidence]
            golds.setdefault(question.text, []).extend(answers)
    return golds


def report(name: str, judged: Sequence[tuple[Sent, float]]) -> None:
    """Print how well the probabilities tell and how well they are calibrated, by set and way of asking."""
    print(f"{name}, on documents that were not fitted to")
    unknown = [(one, p) for one, p in judged if one.kind == "another collection"]
    for source in COLLECTIONS:
        for kind in ("document known", "collection searched"):
            mine = [(one, p) for one, p in judged if one.source == source and one.kind == kind]
            if not mine:
                continue
            p = [p for _, p in mine]
            told = auroc(p, [one.answerable for one, _ in mine])
            others = [(one, q) for one, q in unknown if one.source == source]
            cross = auroc(
                [*(q for one, q in mine if one.answerable), *(q for _, q in others)],
                [*(True for one, _ in mine if one.answerable), *(False for _ in others)],
            )
            ece = calibration_error(p, [one.holds for one, _ in mine])
            lost = np.mean([float(q < 0.2) for one, q in mine if one.holds] or [np.nan])
            print(
                f"  {source}, {kind}: {len(mine)} questions, AUROC unanswerable {told:.3f}, "
                f"of another collection {cross:.3f} ({len(others)}), ECE {ece:.3f}, "
                f"answered but under 0.2 {lost:.3f}"
            )
    everything = calibration_error([p for _, p in judged], [one.holds for one, _ in judged])
    empty = np.mean([p < 0.2 for _, p in unknown])
    print(f"  all: ECE {everything:.3f} ({len(judged)}); another collection under 0.2: {empty:.3f}")


if __name__ == "__main__":
    main()
