"""From runs to numbers: every measure of a run for every question, and tables of means."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from precise_rag.evaluation.corpus import Corpus
from precise_rag.evaluation.datasets import Dataset, Evidence
from precise_rag.evaluation.evidence import BUDGETS, Values, score_evidence, useful_ratio
from precise_rag.evaluation.ranking import CUTOFFS, Passages, ranking_scores
from precise_rag.evaluation.runs import Run
from precise_rag.evaluation.statistics import Comparison, Interval, bootstrap_interval, compare_paired
from precise_rag.sentences import split_sentences

USEFUL_BUDGET = 450
"""Tokens at which the share of useful sentences is taken (ParetoRAG, appendix B)."""


@dataclass(frozen=True)
class Measured:
    """The measures of one run: `values[name]` has one value per question of the dataset.

    Names: recall@b, precision@b and iou@b for each budget b; recall, precision and tokens of all
    that is kept; useful@450; Hits@k, MRR@k and nDCG@k of passages; ms.
    """

    name: str
    values: Mapping[str, Values]
    facts: Mapping[str, Any]

    @property
    def recall_per_1000_tokens(self) -> float:
        """Evidence for money: mean recall of what is kept, per 1,000 tokens sent."""
        return float(1000 * self.values["recall"].mean() / max(self.values["tokens"].mean(), 1.0))


class Row(NamedTuple):
    """One pipeline of a table: the mean of each measure, and the comparison with the baseline."""

    name: str
    means: dict[str, Interval]
    against_baseline: dict[str, Comparison]
    facts: dict[str, Any]


class Judge:
    """Measures runs over one dataset; what does not depend on the run is computed once."""

    def __init__(self, dataset: Dataset, budgets: Sequence[int] = BUDGETS) -> None:
        self.dataset = dataset.with_evidence()
        self.corpus = Corpus(dataset.documents)
        self.budgets = tuple(budgets)
        self._passages = Passages(self.corpus)
        self._sentences = [
            Evidence(document.id, *span)
            for document in dataset.documents
            for span in split_sentences(document.text)
        ]
        self._relevant = {q.id: self._passages.ids(q.evidence) for q in self.dataset.questions}

    def measure(self, run: Run) -> Measured:
        """All measures of a run."""
        kept = {q.id: [p for p in run.pieces[q.id] if p.kept] for q in self.dataset.questions}
        names = [f"{kind}@{b}" for kind in ("recall", "precision", "iou") for b in self.budgets]
        rows = []
        for question in self.dataset.questions:
            scores = score_evidence(
                self.corpus, kept[question.id], question.evidence, (*self.budgets, math.inf)
            )
            useful = useful_ratio(
                self.corpus, kept[question.id], question.evidence, self._sentences, USEFUL_BUDGET
            )
            at_budgets = np.concatenate([scores.recall[:-1], scores.precision[:-1], scores.iou[:-1]])
            rows.append([*at_budgets, scores.recall[-1], scores.precision[-1], scores.tokens[-1], useful])
        columns = np.array(rows, dtype=np.float64).T
        values = dict(zip([*names, "recall", "precision", "tokens", "useful@450"], columns, strict=True))
        ranked = {id: self._passages.ids(pieces) for id, pieces in kept.items()}
        values.update(ranking_scores(self._relevant, ranked, CUTOFFS))
        values["ms"] = np.array([run.milliseconds[q.id] for q in self.dataset.questions])
        return Measured(run.settings.name, values, run.facts)

    def table(self, measured: Sequence[Measured], baseline: str, seed: int = 0) -> list[Row]:
        """Means with bootstrap intervals, and paired comparisons with the baseline.

        Questions of one document are drawn together.
        """
        groups = [question.group for question in self.dataset.questions]
        reference = next(m for m in measured if m.name == baseline)
        compared = [f"recall@{budget}" for budget in self.budgets]
        return [
            Row(
                one.name,
                {name: bootstrap_interval(v, groups=groups, seed=seed) for name, v in one.values.items()},
                {
                    name: compare_paired(one.values[name], reference.values[name], groups=groups, seed=seed)
                    for name in compared
                    if one is not reference
                },
                {**one.facts, "recall_per_1000_tokens": one.recall_per_1000_tokens},
            )
            for one in measured
        ]
