"""Measures of runs: every measure for every question, and tables of means."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from precise_rag.evaluation.datasets import Dataset, Evidence
from precise_rag.evaluation.measures.evidence import BUDGETS, Values, score_evidence, useful_ratio
from precise_rag.evaluation.measures.positions import Positions
from precise_rag.evaluation.measures.ranking import CUTOFFS, RankedPassages, ranking_scores
from precise_rag.evaluation.measures.statistics import (
    Comparison,
    Interval,
    bootstrap_interval,
    compare_paired,
)
from precise_rag.evaluation.runs.run import Piece, Run
from precise_rag.sentences import split_sentences
from precise_rag.trace import Bill

USEFUL_BUDGET = 450
"""Token budget of the share of useful sentences (ParetoRAG, appendix B)."""


@dataclass(frozen=True)
class Measured:
    """The measures of one run.

    name: of the pipeline.
    values: name of a measure to (n_questions,) values.
        recall@b, precision@b, iou@b: evidence at each budget b. recall, precision, iou: evidence in all
        kept text. useful@450: share of useful sentences. Hits@k, MRR@k, nDCG@k: of passages.
        tokens: kept. ms: milliseconds of retrieval. llm calls, llm tokens: spent by retrieval, prompt and
        reply together (0 if no language model is asked).
    facts: see `Run`.
    """

    name: str
    values: Mapping[str, Values]
    facts: Mapping[str, Any]


class Row(NamedTuple):
    """One pipeline of a table: means of its measures, and comparisons with the baseline."""

    name: str
    means: dict[str, Interval]
    against_baseline: dict[str, Comparison]
    facts: dict[str, Any]

    @property
    def recall_per_1000_tokens(self) -> float | None:
        """Mean recall of the kept text per 1,000 tokens; None if no question has evidence."""
        if "recall" not in self.means:
            return None
        return 1000 * self.means["recall"].mean / max(self.means["tokens"].mean, 1.0)


class Measurer:
    """Measures runs over one dataset.

    dataset: questions without evidence are left out if any question has evidence. If none has, only
        tokens, milliseconds, model calls and (see `answering`) answers are measured.
    budgets: tokens.
    """

    def __init__(self, dataset: Dataset, budgets: Sequence[int] = BUDGETS) -> None:
        self.dataset = dataset.measurable()
        self.positions = Positions(dataset.documents)
        self.budgets = tuple(budgets)
        self._passages = RankedPassages(self.positions)
        self._sentences = self.positions.locate(
            [
                Evidence(document.id, *span)
                for document in dataset.documents
                for span in split_sentences(document.text)
            ]
        )
        self._relevant = {q.id: self._passages.ids(q.evidence) for q in self.dataset.questions}

    def measure(self, run: Run) -> Measured:
        """Compute every measure of a run."""
        questions = self.dataset.questions
        kept = {q.id: [p for p in run.pieces[q.id] if p.kept] for q in questions}
        bills = [run.spent.get(q.id, Bill()) for q in questions]
        values = {
            **(self._about_evidence(kept) if questions[0].evidence else {}),
            "tokens": np.array(
                [self.positions.count_tokens(kept[q.id]).sum() for q in questions], np.float64
            ),
            "ms": np.array([run.milliseconds[q.id] for q in questions]),
            "llm calls": np.array([bill.calls for bill in bills], np.float64),
            "llm tokens": np.array([bill.input_tokens + bill.output_tokens for bill in bills], np.float64),
        }
        return Measured(run.settings.name, values, run.facts)

    def _about_evidence(self, kept: Mapping[str, Sequence[Piece]]) -> dict[str, Values]:
        rows = []
        for question in self.dataset.questions:
            pieces, evidence = kept[question.id], question.evidence
            scores = score_evidence(self.positions, pieces, evidence, (*self.budgets, math.inf))
            useful = useful_ratio(self.positions, pieces, evidence, self._sentences, USEFUL_BUDGET)
            rows.append([*scores.recall, *scores.precision, *scores.iou, useful])
        names = [
            f"{kind}{at}"
            for kind in ("recall", "precision", "iou")
            for at in (*(f"@{budget}" for budget in self.budgets), "")
        ]
        columns = np.array(rows, dtype=np.float64).T
        ranked = {question: self._passages.ids(pieces) for question, pieces in kept.items()}
        return {
            **dict(zip([*names, "useful@450"], columns, strict=True)),
            **ranking_scores(self._relevant, ranked, CUTOFFS),
        }

    def table(self, measured: Sequence[Measured], baseline: str, seed: int = 0) -> list[Row]:
        """Compute means with bootstrap intervals, and paired comparisons of recall with the baseline.

        Questions about one document form a group (see `statistics`).
        """
        groups = [question.group for question in self.dataset.questions]
        reference = next(m for m in measured if m.name == baseline)
        compared = [name for name in reference.values if name.startswith("recall@")]
        return [
            Row(
                one.name,
                {name: bootstrap_interval(v, groups=groups, seed=seed) for name, v in one.values.items()},
                {
                    name: compare_paired(one.values[name], reference.values[name], groups=groups, seed=seed)
                    for name in compared
                    if one is not reference
                },
                dict(one.facts),
            )
            for one in measured
        ]
