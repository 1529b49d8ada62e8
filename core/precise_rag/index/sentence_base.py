"""The base class of indexes whose rows are sentences."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.filters import Filter
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.context import check_alpha
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import passage_ids
from precise_rag.index.arrays.spans import trim_spans
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.vectors import vector_columns
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.base import DocumentIndex
from precise_rag.index.candidates import limit_tokens, merge_neighbours, widen_to_passages
from precise_rag.index.neighbours import neighbour_rows
from precise_rag.index.segments import Part
from precise_rag.index.snapshot import Hits, Snapshot
from precise_rag.types import Candidate, Document, FloatArray, IntArray, SentenceTable, Stretch

Returns = Literal["sentence", "passage", "mixed"]
"""What a search returns for a scored sentence: the "sentence"; the "passage" around it, with the score of its
best sentence; or "mixed": the passage for the best sentence, and single sentences after it."""


def check_returns(returns: Returns) -> Returns:
    """Return the value. Raises InputError unless it is one of `Returns`."""
    if returns not in get_args(Returns):
        raise InputError(f"returns must be one of {', '.join(get_args(Returns))}, got {shown(returns)}")
    return returns


class SentenceIndex(DocumentIndex):
    """An index of sentences; each is scored together with its context."""

    @property
    def returns(self) -> Returns:
        """Default of `returns` in `search`."""
        return "sentence"

    def search(
        self,
        query: str,
        top_k: int = 10,
        *,
        filter: Filter | Mapping[str, Any] | None = None,
        vector: FloatArray | None = None,
        alpha: float | None = None,
        returns: Returns | None = None,
        merge_adjacent: bool = False,
        max_tokens: int | None = None,
    ) -> list[Candidate]:
        """Return at most `top_k` candidates, best first.

        query: the query as text.
        top_k: maximum number of candidates; at least 1.
        filter: what the documents of all candidates must meet, see `as_filter`; default: nothing.
        vector: (d,) the query's vector; default: `query` is encoded.
        alpha: weight of a sentence against its context (0 to 1); default: the index's setting.
        returns: "sentence", "passage" or "mixed", see `Returns`; default: the index's `returns`.
        merge_adjacent: join neighbouring sentences of a passage into one candidate.
        max_tokens: limit on the tokens of all candidates; one that does not fit is skipped.
        Raises EmptyIndexError if the index holds no text.
        """
        returns = check_returns(returns or self.returns)
        snapshot = self._ready(top_k, query, filter)
        if snapshot.matches_nothing:
            return []
        direction = self._query_vector(query, vector)
        scores, parts = self._scores(snapshot, query, direction, self._alpha(alpha), top_k)
        hits = Hits.of(_ROWS[returns](snapshot, scores, top_k), scores, parts)
        candidates = snapshot.candidates(hits, self.score_scale)
        texts = {
            c.doc_id: snapshot.document(row).text
            for c, row in zip(candidates, hits.rows.tolist(), strict=True)
        }
        n_wide = {"sentence": 0, "mixed": 1, "passage": len(candidates)}[returns]
        candidates[:n_wide] = widen_to_passages(
            candidates[:n_wide],
            [texts[candidate.doc_id] for candidate in candidates[:n_wide]],
            [_tokens_of_passage(snapshot, row) for row in hits.rows[:n_wide].tolist()],
        )
        if merge_adjacent:
            candidates = merge_neighbours(candidates, texts)
        return candidates if max_tokens is None else limit_tokens(candidates, max_tokens)

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the stretches of `sentences` with up to `reach` sentences before and after each.

        Each sentence is in one stretch; stretches of one document have a sentence between them. A candidate
        that is not a sentence of the index is left out. Nothing is encoded.
        """
        if not sentences:
            return []
        snapshot = self._ready(top_k=1)
        ranges = neighbour_rows(snapshot, sentences, reach)
        return [snapshot.stretch(first, end, self.score_scale) for first, end in ranges]

    @abstractmethod
    def _scores(
        self, snapshot: Snapshot, query: str, vector: FloatArray, alpha: float, top_k: int
    ) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """(n,) scores of all sentences, -inf for those to leave out; and the scores behind them, by name.

        Left out is at least what `Snapshot.matching` says. top_k: how many sentences or passages are wanted.
        """

    def _alpha(self, alpha: float | None) -> float:
        chosen: float = self.settings.alpha if alpha is None else check_alpha(alpha)
        return chosen

    def _read(
        self, documents: Sequence[Document], words: Vocabulary, show_progress: bool
    ) -> Iterator[Columns]:
        for document, table in self._tables(documents, show_progress):
            yield self._columns(document, table, words)

    def _columns(self, document: Document, table: SentenceTable, words: Vocabulary) -> dict[str, Any]:
        spans = trim_spans(document.text, table.spans)
        assert table.vectors is not None
        passages = Groups.by_change(passage_ids(document, table, self.settings.passages))
        return {
            "spans": spans,
            "n_tokens": table.n_tokens,
            **vector_columns(table.vectors, self.settings.precision),
            "passage_spans": passages.spans(spans)[passages.of_row],
        }

    def _hits(self, snapshot: Snapshot, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        direction = self._query_vector(query, vector)
        scores, parts = self._scores(snapshot, query, direction, self._alpha(None), top_k)
        return Hits.of(top_rows(scores, top_k), scores, parts)


def _passage_of(snapshot: Snapshot, row: int) -> tuple[Part, int, int]:
    """The part that a row is in; the first row of its passage and the one behind the last, in the part."""
    part, offset = snapshot.part_of(row)
    passages: Groups = part.prepared.passages
    return part, *passages.rows(int(passages.of_row[row - offset]))


def _tokens_of_passage(snapshot: Snapshot, row: int) -> int:
    part, first, end = _passage_of(snapshot, row)
    return int(part.segment.collection.columns["n_tokens"][first:end].sum())


def _best_sentences(snapshot: Snapshot, scores: FloatArray, top_k: int) -> IntArray:
    return top_rows(scores, top_k)


def _best_passages(snapshot: Snapshot, scores: FloatArray, top_k: int) -> IntArray:
    found = [
        rows.start + part.prepared.passages.best_rows(scores[rows], top_k) for part, rows in snapshot.slices()
    ]
    best = np.concatenate(found)
    rows: IntArray = best[top_rows(scores[best], top_k)]
    return rows


def _best_passage_then_sentences(snapshot: Snapshot, scores: FloatArray, top_k: int) -> IntArray:
    best = int(np.argmax(scores))
    _, first, end = _passage_of(snapshot, best)
    first, end = (place + snapshot.part_of(best)[1] for place in (first, end))
    rows = top_rows(scores, top_k - 1 + end - first)
    return np.append(best, rows[(rows < first) | (rows >= end)])[:top_k]


_ROWS = {
    "sentence": _best_sentences,
    "passage": _best_passages,
    "mixed": _best_passage_then_sentences,
}
