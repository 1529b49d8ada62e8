"""From runs to numbers: every measure of a run for every question, and tables of means."""

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
from precise_rag.evaluation.runs.metered import Spent
from precise_rag.evaluation.runs.run import Piece, Run
from precise_rag.sentences import split_sentences

USEFUL_BUDGET = 450
"""Tokens at which the share of useful sentences is taken (ParetoRAG, appendix B)."""


@dataclass(frozen=True)
class Measured:
    """The measures of one run: `values[name]` has one value per question of the dataset.

    Names: recall@b, precision@b and iou@b for each budget b, and recall, precision and iou of all
    that is kept; useful@450; Hits@k, MRR@k and nDCG@k of passages; tokens kept; ms; llm calls and llm
    tokens, in and out, that retrieving itself took (0 where no language model is asked).
    """

    name: str
    values: Mapping[str, Values]
    facts: Mapping[str, Any]


class Row(NamedTuple):
    """One pipeline of a table: the mean of each measure, and the comparison with the baseline."""

    name: str
    means: dict[str, Interval]
    against_baseline: dict[str, Comparison]
    facts: dict[str, Any]

    @property
    def recall_per_1000_tokens(self) -> float | None:
        """Evidence for money: mean recall of what is kept, per 1,000 tokens sent; None without evidence."""
        if "recall" not in self.means:
            return None
        return 1000 * self.means["recall"].mean / max(self.means["tokens"].mean, 1.0)


class Measurer:
    """Measures runs over one dataset; what does not depend on the run is computed once.

    Questions without evidence are left out, unless there are no others: then only tokens and
    milliseconds can be measured (and answers, see `answering`).
    """

    def __init__(self, dataset: Dataset, budgets: Sequence[int] = BUDGETS) -> None:
        self.dataset = dataset.measurable()
        self.corpus = Positions(dataset.documents)
        self.budgets = tuple(budgets)
        self._passages = RankedPassages(self.corpus)
        self._sentences = self.corpus.locate(
            [
                Evidence(document.id, *span)
                for document in dataset.documents
                for span in split_sentences(document.text)
            ]
        )
        self._relevant = {q.id: self._passages.ids(q.evidence) for q in self.dataset.questions}

    def measure(self, run: Run) -> Measured:
        """All measures of a run."""
        questions = self.dataset.questions
        kept = {q.id: [p for p in run.pieces[q.id] if p.kept] for q in questions}
        values = {
            **(self._about_evidence(kept) if questions[0].evidence else {}),
            "tokens": np.array([self.corpus.count_tokens(kept[q.id]).sum() for q in questions], np.float64),
            "ms": np.array([run.milliseconds[q.id] for q in questions]),
            "llm calls": np.array([run.spent.get(q.id, Spent()).calls for q in questions], np.float64),
            "llm tokens": np.array([sum(run.spent.get(q.id, Spent())[1:]) for q in questions], np.float64),
        }
        return Measured(run.settings.name, values, run.facts)

    def _about_evidence(self, kept: Mapping[str, Sequence[Piece]]) -> dict[str, Values]:
        rows = []
        for question in self.dataset.questions:
            pieces, evidence = kept[question.id], question.evidence
            scores = score_evidence(self.corpus, pieces, evidence, (*self.budgets, math.inf))
            useful = useful_ratio(self.corpus, pieces, evidence, self._sentences, USEFUL_BUDGET)
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
        """Means with bootstrap intervals, and paired comparisons with the baseline.

        Questions of one document are drawn together.
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
