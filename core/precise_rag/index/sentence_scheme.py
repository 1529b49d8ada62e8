"""Rows that are sentences in passages, each scored together with its context."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from typing_extensions import override

from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.context import check_alpha
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import passage_ids
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.vectors import vector_columns
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.rows.segments import Part
from precise_rag.index.rows.snapshot import Hits, Snapshot
from precise_rag.index.scheme import Scheme
from precise_rag.sentences.words import trim_spans
from precise_rag.types import Document, FloatArray, IntArray, SentenceTable

Returns = Literal["sentence", "passage", "mixed"]
"""What a search returns for a scored sentence: the "sentence"; the "passage" around it, with the score of its
best sentence; or "mixed": the passage for the best sentence, and single sentences after it."""


def check_returns(returns: Returns) -> Returns:
    """Return the value. Raises InputError unless it is one of `Returns`."""
    if returns not in get_args(Returns):
        raise InputError(f"returns must be one of {', '.join(get_args(Returns))}, got {shown(returns)}")
    return returns


class SentenceScheme(Scheme):
    """Makes one row of each sentence, with its vector and the span of its passage.

    The settings are `VectorSettings` with `alpha` and `passages`; a prepared segment has `passages`, the
    groups of its rows.
    """

    @property
    def returns(self) -> Returns:
        """The unit that a search returns by default."""
        return "sentence"

    @override
    def read(
        self, documents: Sequence[Document], words: Vocabulary, show_progress: bool
    ) -> Iterator[Columns]:
        for document, table in self.tables(documents, show_progress):
            yield self.columns(document, table, words)

    def columns(self, document: Document, table: SentenceTable, words: Vocabulary) -> dict[str, Any]:
        """Return the columns of one document; table: its sentences. words: see `read`."""
        spans = trim_spans(document.text, table.spans)
        assert table.vectors is not None
        passages = Groups.by_change(passage_ids(document, table, self.settings.passages))
        return {
            "spans": spans,
            "n_tokens": table.n_tokens,
            **vector_columns(table.vectors, self.settings.precision),
            "passage_spans": passages.spans(spans)[passages.of_row],
        }

    @abstractmethod
    def score(
        self, snapshot: Snapshot, query: str, vector: FloatArray, alpha: float
    ) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """(n,) scores of all sentences, -inf for those to leave out; and the scores behind them, by name.

        Left out is at least what `Snapshot.matching` says. vector: (d,) the query's, of unit length.
        alpha: weight of a sentence against its context.
        """

    def find(
        self,
        snapshot: Snapshot,
        query: str,
        vector: FloatArray | None,
        top_k: int,
        *,
        alpha: float | None = None,
        returns: Returns = "sentence",
    ) -> Hits:
        """Return the best rows for a query; see `Scheme`.

        alpha: weight of a sentence against its context (0 to 1); default: the setting.
        returns: what the rows stand for; of a passage, the row of its best sentence is returned.
        """
        weight: float = self.settings.alpha if alpha is None else check_alpha(alpha)
        direction = self.direction(snapshot, query, vector)
        scores, parts = self.score(snapshot, query, direction, weight)
        return self.with_levels(Hits.of(_ROWS[returns](snapshot, scores, top_k), scores, parts), direction)


def tokens_of_passage(snapshot: Snapshot, row: int) -> int:
    """Return the tokens of the passage that a row is in."""
    part, first, end = _passage_of(snapshot, row)
    return int(part.segment.collection.columns["n_tokens"][first:end].sum())


def _passage_of(snapshot: Snapshot, row: int) -> tuple[Part, int, int]:
    """The part that a row is in; the first row of its passage and the one behind the last, in the part."""
    part, offset = snapshot.part_of(row)
    passages: Groups = part.prepared.passages
    return part, *passages.rows(int(passages.of_row[row - offset]))


def _best_sentences(snapshot: Snapshot, scores: FloatArray, top_k: int) -> IntArray:
    return top_rows(scores, top_k)


def _best_passages(snapshot: Snapshot, scores: FloatArray, top_k: int) -> IntArray:
    best_rows = [
        rows.start + part.prepared.passages.best_rows(scores[rows], top_k) for part, rows in snapshot.slices()
    ]
    best = np.concatenate(best_rows)
    rows: IntArray = best[top_rows(scores[best], top_k)]
    return rows


def _best_passage_then_sentences(snapshot: Snapshot, scores: FloatArray, top_k: int) -> IntArray:
    best = int(np.argmax(scores))
    _, first, end = _passage_of(snapshot, best)
    first, end = (place + snapshot.part_of(best)[1] for place in (first, end))
    rows = top_rows(scores, top_k - 1 + end - first)
    return np.append(best, rows[(rows < first) | (rows >= end)])[:top_k]


_ROWS: Mapping[Returns, Callable[[Snapshot, FloatArray, int], IntArray]] = {
    "sentence": _best_sentences,
    "passage": _best_passages,
    "mixed": _best_passage_then_sentences,
}
