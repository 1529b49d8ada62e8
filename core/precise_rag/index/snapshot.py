"""One state of an index, and the rows that a search finds in it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from precise_rag.index.arrays.collection import Collection
from precise_rag.types import Candidate, Document, FloatArray, IntArray, ScoreScale, Span


class Hits(NamedTuple):
    """Rows found by a search, best first.

    rows: (k,) row numbers of the collection.
    scores: (k,) score of each row.
    parts: (k,) scores behind `scores`, by name; they become `Candidate.scores`.
    """

    rows: IntArray
    scores: FloatArray
    parts: Mapping[str, FloatArray] = {}

    @classmethod
    def of(cls, rows: IntArray, scores: FloatArray, parts: Mapping[str, FloatArray]) -> "Hits":
        """Take `rows` from scores of all rows; rows with score -inf are left out."""
        rows = rows[np.isfinite(scores[rows])]
        return cls(rows, scores[rows], {name: values[rows] for name, values in parts.items()})


class Snapshot(NamedTuple):
    """One state of an index; a search reads the same one from start to end.

    collection: documents and rows.
    documents: the documents in order.
    prepared: what the subclass computed from the collection.
    """

    collection: Collection
    documents: tuple[Document, ...]
    prepared: Any

    def candidates(self, hits: Hits, score_scale: ScoreScale) -> list[Candidate]:
        """Return the rows of `hits` as candidates, in the same order; score_scale: scale of their scores."""
        columns = self.collection.columns
        spans, n_tokens, passages = columns["spans"], columns["n_tokens"], columns.get("passage_spans")
        candidates = []
        for place, (row, owner) in enumerate(zip(hits.rows, self.collection.owners(hits.rows), strict=True)):
            document = self.documents[owner]
            start, end = map(int, spans[row])
            candidates.append(
                Candidate(
                    doc_id=document.id,
                    start=start,
                    end=end,
                    text=document.text[start:end],
                    score=float(hits.scores[place]),
                    score_scale=score_scale,
                    n_tokens=int(n_tokens[row]),
                    passage=None if passages is None else Span(*map(int, passages[row])),
                    scores={name: float(values[place]) for name, values in hits.parts.items()},
                    metadata=document.metadata,
                )
            )
        return candidates
