"""What the indexes of sentences share: how a scored sentence becomes what comes back."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import passage_ids
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.vectors import vector_columns
from precise_rag.index.base import DocumentIndex, Hits, View
from precise_rag.index.pieces import best_of_groups, merged, trimmed, widened, within
from precise_rag.types import Candidate, Document, FloatArray, IntArray, SentenceTable

Returns = Literal["sentence", "passage", "mixed"]
"""What comes back for a scored sentence: itself; the passage around it; or ("mixed") the whole
passage for the best sentence of all, and single sentences after it."""


def check_alpha(alpha: float) -> float:
    """alpha itself. Raises InputError unless it is a weight."""
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha is {alpha}; expected 0 (context alone) to 1 (sentence alone)")
    return alpha


def check_returns(returns: Returns) -> Returns:
    """`returns` itself. Raises InputError unless it is a unit."""
    if returns not in get_args(Returns):
        raise InputError(f"returns is {returns!r}; expected one of {', '.join(get_args(Returns))}")
    return returns


class SentenceIndex(DocumentIndex):
    """Scores sentences, each weighed by `alpha` against its context."""

    @property
    def returns(self) -> Returns:
        """What `search` gives where the caller does not say."""
        return "sentence"

    def search(
        self,
        query: str,
        top_k: int = 10,
        *,
        vector: FloatArray | None = None,
        alpha: float | None = None,
        returns: Returns | None = None,
        merge_adjacent: bool = False,
        max_tokens: int | None = None,
    ) -> list[Candidate]:
        """At most `top_k` candidates, best first.

        vector: (d,) the query's own vector, where the caller has it. alpha: another one for this
        query; nothing is encoded again. returns: "sentence"; the "passage" around it, which scores
        like its best sentence; or "mixed", the passage for the best sentence and then single
        sentences. merge_adjacent: neighbouring sentences of one passage come back as one piece.
        max_tokens: pieces that would exceed it together are left out.
        """
        returns = check_returns(returns or self.returns)
        view = self._ready(top_k)
        groups: Groups = view.prepared.groups
        scores, parts = self._scores(view, query, self._query_vector(query, vector), self._alpha(alpha))
        hits = Hits.of(_ROWS[returns](scores, groups, top_k), scores, parts)
        candidates = self._candidates(view, hits)
        n_wide = {"sentence": 0, "mixed": 1, "passage": len(candidates)}[returns]
        candidates[:n_wide] = widened(candidates[:n_wide], view, groups, hits.rows[:n_wide])
        if merge_adjacent:
            candidates = merged(candidates, view.collection.documents)
        return candidates if max_tokens is None else within(candidates, max_tokens)

    @abstractmethod
    def _scores(
        self, view: View, query: str, vector: FloatArray, alpha: float
    ) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """(n,) scores of all sentences, -inf for those ruled out, and the raw scores behind them."""

    def _alpha(self, alpha: float | None) -> float:
        chosen: float = self.settings.alpha if alpha is None else check_alpha(alpha)
        return chosen

    def _read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        for document, table in self._tables(documents, show_progress):
            yield self._columns(document, table)

    def _columns(self, document: Document, table: SentenceTable) -> dict[str, Any]:
        spans = trimmed(document.text, table.spans)
        assert table.vectors is not None
        groups = Groups.by_change(passage_ids(document, table, self.settings.passages))
        return {
            "spans": spans,
            "n_tokens": table.n_tokens,
            **vector_columns(table.vectors, self.settings.precision),
            "passage_spans": groups.spans(spans)[groups.of_row],
        }

    def _hits(self, view: View, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        scores, parts = self._scores(view, query, self._query_vector(query, vector), self._alpha(None))
        return Hits.of(top_rows(scores, top_k), scores, parts)


def _best_passage_then_sentences(scores: FloatArray, groups: Groups, top_k: int) -> IntArray:
    best = int(np.argmax(scores))
    passage = groups.of_row[best]
    rows = top_rows(scores, top_k - 1 + int(groups.sizes[passage]))
    return np.append(best, rows[groups.of_row[rows] != passage])[:top_k]


_ROWS = {
    "sentence": lambda scores, groups, top_k: top_rows(scores, top_k),
    "passage": best_of_groups,
    "mixed": _best_passage_then_sentences,
}
