"""Grown evidence against passages and single sentences, at equal tokens and as it is selected.

    python -m benchmarks.evidence.measure --data DIR [--vectors FILE] [--cache DIR]

Questions and documents that the growth model was not trained on: half of four development sets, and sets that
are unseen as a whole. Everything is reranked by the cascade. "left out" is a model trained without the set,
as on a new kind of collection; "trained on these questions" has seen what it is measured on, so better growth
can hardly reach more with this reranker. Intervals: documents redrawn in pairs. "saved": tokens that
selection by probability does not send, against the fixed number of sentences with the same mean recall. That
is the default's recall or, if no number of sentences reaches it, that of all that were found, to which the
selection's `ratio` is raised. "kept": the default's share of the evidence among the found sentences. ECE:
expected calibration error over ten bins; "chance": what the same number of perfectly calibrated spans would
show. ms: CPU time per question. "own documents": the questions do not say which contract or meeting they are
about, and are asked of it alone.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.evidence.questions import RETURNS, Piece, other_returns, piece, positions_of, recalls
from benchmarks.reranking.measure import calibration_error
from benchmarks.sent import covered
from benchmarks.tables import cell, percent, table
from precise_rag.evaluation import BUDGETS, Interval, compare_paired
from precise_rag.evidence.model import EvidenceModel, evidence_model
from precise_rag.selection import ProbabilitySelector
from precise_rag.types import Candidate, Stretch
from training.candidate_lists import HALVED, is_relevant
from training.evidence.questions import (
    UNSEEN,
    Asked,
    QuestionSet,
    held_out_sets,
    stretches_around,
    training_sets,
)
from training.evidence.train import fit, read_sets, rows_of

SETS = (*HALVED, *UNSEEN)
NAMELESS = ("qmsum", "cuad")
"""Sets whose questions do not say which document they are about."""
RATIOS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, ProbabilitySelector().share_of_best)
"""Of selections that send more and more; the last is the default's."""


class Read:
    """A question with the features of the sentences around the found ones, and how long reading them took."""

    def __init__(self, asked: Asked, documents: Mapping[str, Any]) -> None:
        started = time.process_time()
        self.stretches: list[Stretch] = stretches_around(asked, documents)
        self.rows = rows_of(asked, self.stretches)
        self.ms = (time.process_time() - started) * 1e3
        self.sentences = [s for stretch in self.stretches for s in stretch.sentences]
        self.relevant = np.array([is_relevant(s, asked) for s in self.sentences])

    def probabilities(self, model: EvidenceModel) -> np.ndarray:
        ends = np.cumsum([len(stretch.sentences) for stretch in self.stretches])[:-1]
        found = np.split(self.rows.is_found, ends)
        grown = [model.evaluate(r, f).probability for r, f in zip(self.rows.read, found, strict=True)]
        return np.concatenate(grown)

    def ranked(self, probability: np.ndarray) -> list[Piece]:
        order = np.argsort(-probability, kind="stable")
        return [piece(self.sentences[row])._replace(score=float(probability[row])) for row in order]


def measure(one: QuestionSet, models: Mapping[str, EvidenceModel], options: Any) -> dict[str, Any]:
    """Recalls of every way of sending evidence, the selection and the calibration of one set."""
    positions = positions_of(one)
    asked = [question for question in one.asked if question.found]
    read = [Read(question, one.documents) for question in asked]
    ways = {"sentences": [[piece(c) for c in q.found] for q in asked]}
    ways |= {name: [r.ranked(r.probabilities(m)) for r in read] for name, m in models.items()}
    found = {name: recalls(positions, asked, lists) for name, lists in ways.items()}
    groups = [question.group for question in asked]
    return {
        "set": one.name,
        "questions": len(asked),
        "ms": float(np.mean([r.ms for r in read])),
        "recall": {name: values.mean(axis=0).tolist() for name, values in found.items()},
        "fewer": fewer(one._replace(asked=asked), found, options),
        "gain": _gains(found["grown"], [found["sentences"]] * len(BUDGETS), groups),
        "selection": selection(asked, ways["grown"]),
        "calibration": calibration(read, models["grown"]),
    }


def fewer(one: QuestionSet, measured: Mapping[str, np.ndarray], options: Any) -> dict[str, Any]:
    """The recall of what a search returns otherwise, for fewer questions.

    "gain": of grown evidence over the best of the others at each budget, by its mean.
    """
    if one.name.split("/")[1] not in options.returns:  # nor are those about one document alone
        return {}
    lists = other_returns(one, options)
    n = len(lists[RETURNS[0]])
    found = {name: recalls(positions_of(one), one.asked[:n], several) for name, several in lists.items()}
    found["sentences"], grown = (measured[name][:n] for name in ("sentences", "grown"))
    groups = [question.group for question in one.asked[:n]]
    best = [max(found, key=lambda name, b=b: found[name][:, b].mean()) for b in range(len(BUDGETS))]
    gains = _gains(grown, [found[name] for name in best], groups)
    recall = {name: values.mean(axis=0).tolist() for name, values in {**found, "grown": grown}.items()}
    return {"questions": n, "recall": recall, "best": best, "gain": gains}


def _gains(ours: np.ndarray, theirs: Sequence[np.ndarray], groups: Sequence[str]) -> list[Interval]:
    """The gain at each budget. theirs: what is compared there."""
    return [
        compare_paired(ours[:, b], other[:, b], groups=groups).difference for b, other in enumerate(theirs)
    ]


def sent(
    question: Asked, pieces: Sequence[Piece], ratio: float = ProbabilitySelector().share_of_best
) -> tuple[Candidate, ...]:
    """What the selection sends. pieces: the sentences around the found ones, by probability."""
    found = {(c.doc_id, c.start) for c in question.found}
    likely = [p for p in pieces if p.score >= 0.02 or (p.doc_id, p.start) in found]
    return (
        ProbabilitySelector(share_of_best=ratio)
        .select((_candidate(p) for p in likely), query=question.question)
        .kept
    )


def selection(asked: Sequence[Asked], grown: Sequence[Sequence[Piece]]) -> dict[str, float]:
    """Tokens and recall of selections by probability, against fixed numbers of found sentences."""

    def mean(lists: Sequence[Sequence[Any]]) -> tuple[float, float]:
        shares = [covered(question, some) for some, question in zip(lists, asked, strict=True)]
        tokens = [sum(c.n_tokens or 0 for c in some) for some in lists]
        return float(np.mean(shares)), float(np.mean(tokens))

    fixed = [mean([question.found[:k] for question in asked]) for k in range(51)]
    chosen = [[sent(q, p, ratio) for q, p in zip(asked, grown, strict=True)] for ratio in RATIOS]
    selected = [mean(lists) for lists in chosen]
    recall, tokens = selected[-1]
    alike = min(recall, fixed[-1][0])
    kept = []
    for question, some in zip(asked, chosen[-1], strict=True):
        found = {(c.doc_id, c.start) for c in question.found}
        if among := covered(question, question.found):
            kept.append(covered(question, [c for c in some if (c.doc_id, c.start) in found]) / among)
    ours, theirs = (float(np.interp(alike, *zip(*curve, strict=True))) for curve in (selected, fixed))
    figures = {"recall": recall, "tokens": tokens, "same recall": alike, "ours": ours, "fixed": theirs}
    return {**figures, "saved": 1 - ours / theirs, "kept": float(np.mean(kept))}


def calibration(read: Sequence[Read], model: EvidenceModel) -> dict[str, float]:
    """Calibration error of sentences, and of the spans that the default selection sends."""
    p = [r.probabilities(model) for r in read]
    spans, truth = [], []
    for one, probability in zip(read, p, strict=True):
        for run in _runs(one, probability >= ProbabilitySelector().min_score):
            spans.append(probability[run].max())
            truth.append(one.relevant[run].any())
    every = np.concatenate(p), np.concatenate([r.relevant for r in read])
    return {
        "sentences": calibration_error(*every)[0],
        "spans": calibration_error(np.array(spans), np.array(truth))[0],
        "chance": float(np.mean([_chance(np.array(spans), seed) for seed in range(50)])),
    }


def _chance(probability: np.ndarray, seed: int) -> float:
    """The calibration error of probabilities that are right."""
    drawn = np.random.default_rng(seed).random(len(probability)) < probability
    return calibration_error(probability, drawn)[0]


def _runs(read: Read, kept: np.ndarray) -> Iterator[np.ndarray]:
    """The rows of sentences that are kept and follow each other in a stretch."""
    first = 0
    for stretch in read.stretches:
        rows = first + np.flatnonzero(kept[first : first + len(stretch.sentences)])
        yield from (run for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if len(run))
        first += len(stretch.sentences)


def _candidate(one: Piece) -> Candidate:
    return Candidate(one.doc_id, one.start, one.end, one.text, one.score, "probability", one.n_tokens)


def models_of(rows: Mapping[str, list[Any]], one: QuestionSet) -> dict[str, EvidenceModel]:
    """The packaged model, one trained without the set, and one trained on it."""
    kind = one.name.split("/")[1].partition(",")[0]
    without = {name: several for name, several in rows.items() if name != kind}
    models = {"grown": evidence_model()}
    if kind in rows:
        models["grown, left out"] = EvidenceModel.of(fit(without))
    models["grown, trained on these questions"] = EvidenceModel.of(fit(read_sets([one])))
    return models


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--vectors", help="file that keeps sentence vectors")
    parser.add_argument("--cache", help="folder that keeps questions and lists", type=Path)
    parser.add_argument(
        "--returns", nargs="*", default=list(SETS), choices=SETS, help="sets whose passages are reranked, too"
    )
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    options = parser.parse_args()
    rows = read_sets(list(training_sets(options)))
    found = []
    nameless = [name for name in NAMELESS if name in options.sets]
    for one in (*held_out_sets(options, options.sets), *held_out_sets(options, nameless, within=True)):
        found.append(measure(one, models_of(rows, one), options))
        print(found[-1], flush=True)
    made = record.made(__spec__.name, options, evidence=evidence_model().weights_sha256)
    record.save("evidence", "measure", made, markdown(found), {"sets": found})


def markdown(found: Sequence[Mapping[str, Any]]) -> str:
    """The result as tables."""

    def recalls_of(one: Mapping[str, Any], measured: Mapping[str, Any]) -> list[dict[str, Any]]:
        head = {"set": one["set"], "questions": measured["questions"]}
        return [
            head | {"sent": way} | _by_budget(100 * np.array(values))
            for way, values in measured["recall"].items()
        ]

    gains, rest = [], []
    for one in found:
        gains.append({"set": one["set"], "over": "sentences"} | _by_budget(map(percent, one["gain"])))
        if one["fewer"]:
            over = f"the best of the others: {', '.join(one['fewer']['best'])}"
            gains.append({"set": one["set"], "over": over} | _by_budget(map(percent, one["fewer"]["gain"])))
        chosen, errors = one["selection"], one["calibration"]
        rest.append(
            {
                "set": one["set"],
                "tokens": round(chosen["tokens"]),
                "recall %": 100 * chosen["recall"],
                "kept %": 100 * chosen["kept"],
                "at recall %": 100 * chosen["same recall"],
                "tokens there": round(chosen["ours"]),
                "a fixed number's": round(chosen["fixed"]),
                "saved %": 100 * chosen["saved"],
                "ECE sentences": cell(errors["sentences"], ".3f"),
                "ECE spans": cell(errors["spans"], ".3f"),
                "chance": cell(errors["chance"], ".3f"),
                "ms": round(one["ms"]),
            }
        )
    parts = [
        "# Evidence that grows from what is found",
        "Recall of the evidence, the likeliest sentences first.",
        table([row for one in found for row in recalls_of(one, one)]),
    ]
    if fewer := [row for one in found if one["fewer"] for row in recalls_of(one, one["fewer"])]:
        parts.append(f"The first questions, with what a search returns otherwise: {', '.join(RETURNS)}.")
        parts.append(table(fewer))
    parts += ["Gain of grown evidence, with its 95 % interval.", table(gains)]
    parts += ["The default selection, and calibration.", table(rest)]
    return "\n\n".join(parts)


def _by_budget(values: Iterable[Any]) -> dict[str, Any]:
    return {f"{budget} tokens": value for budget, value in zip(BUDGETS, values, strict=True)}


if __name__ == "__main__":
    main()
