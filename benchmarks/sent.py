"""What pipelines send and searches find for questions: the share of the evidence, and the tokens."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables import percent
from precise_rag import PreciseRAG
from precise_rag.evaluation import (
    BUDGETS,
    Dataset,
    Interval,
    Positions,
    Question,
    compare_paired,
    score_evidence,
)


class Piece(NamedTuple):
    """A text that is sent, and the span of the document that it is."""

    doc_id: str
    start: int
    end: int
    text: str


class Sent(NamedTuple):
    """(n,) shares of the evidence that are sent, tokens and characters, and the groups of the questions."""

    shares: np.ndarray
    tokens: np.ndarray
    characters: np.ndarray
    groups: Sequence[str]

    def row(self, first: "Sent") -> dict[str, Any]:
        """Means, and the gain of evidence over another pipeline in percent, documents redrawn in pairs."""
        gain = self.gain(first)
        means = {"evidence %": 100 * float(self.shares.mean()), "tokens": float(self.tokens.mean())}
        return {**means, "gain": gain.mean, "low": gain.low, "high": gain.high}

    def gain(self, first: "Sent") -> Interval:
        return percent(compare_paired(self.shares, first.shares, groups=self.groups).difference)


def covered(question: Any, pieces: Iterable[Any]) -> float:
    """Share of the question's evidence, in characters, that is in some pieces.

    question: has `evidence`. pieces: have `doc_id`, `start` and `end`.
    """
    total = inside = 0
    pieces = list(pieces)
    for doc_id, start, end in (e[:3] for e in question.evidence):
        marks = np.zeros(end - start, dtype=np.bool_)
        for piece in pieces:
            if piece.doc_id == doc_id and piece.start < end and piece.end > start:
                marks[max(piece.start - start, 0) : piece.end - start] = True
        total, inside = total + len(marks), inside + int(marks.sum())
    return inside / total


def sent_by(rag: PreciseRAG, questions: Sequence[Question]) -> Sent:
    """Ask a pipeline every question."""
    kept = [rag.retrieve(question.text).kept for question in questions]
    return Sent(
        np.array([covered(question, some) for question, some in zip(questions, kept, strict=True)]),
        np.array([sum(candidate.n_tokens or 0 for candidate in some) for some in kept]),
        np.array([sum(candidate.end - candidate.start for candidate in some) for some in kept]),
        [question.group for question in questions],
    )


def recalls(dataset: Dataset, search: Callable[[str, int], Sequence[Any]], top_k: int = 100) -> np.ndarray:
    """(questions, budgets) percent of the evidence that a search finds within the budgets."""
    corpus = Positions(dataset.documents)
    found = [score_evidence(corpus, search(q.text, top_k), q.evidence) for q in dataset.questions]
    return 100 * np.array([score.recall for score in found])


def recall_rows(name: str, found: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """A row for each search, with its difference from the first one and the interval, in pairs."""
    rows: list[dict[str, Any]] = []
    first = next(iter(found.values()))
    for system, values in found.items():
        row: dict[str, Any] = {"set (questions)": f"{name} ({len(values)})", "system": system}
        for column, budget in enumerate(BUDGETS):
            row[str(budget)] = f"{values[:, column].mean():.1f}"
            if system != next(iter(found)):
                gain = compare_paired(values[:, column], first[:, column]).difference
                row[str(budget)] += f" ({gain.mean:+.1f} [{gain.low:+.1f}, {gain.high:+.1f}])"
        rows.append(row)
    return rows
