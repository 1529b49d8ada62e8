"""What sets the kinds of index apart: the rows that they make of documents, and how they score these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from precise_rag.checks import check_methods
from precise_rag.encoded import encode_queries
from precise_rag.encoders.geometry import geometry_of
from precise_rag.errors import InputError
from precise_rag.index.context import check_alpha
from precise_rag.index.groups import Groups, passage_ids
from precise_rag.index.ranking import top_rows
from precise_rag.index.search import Returns, query_direction
from precise_rag.index.table import Block, Columns, Part
from precise_rag.index.vectors import vector_columns
from precise_rag.index.view import Hits, View
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import build_tables, empty_table
from precise_rag.sentences.words import has_words, trim_spans
from precise_rag.types import Document, FloatArray, IntArray, ScoreScale, SentenceTable


class Scheme(ABC):
    """Makes rows of documents, and finds the best rows for a query.

    encoder: turns texts into vectors.
    settings: fields of `settings_type`.
    Raises InputError for an encoder or settings that are not valid.
    """

    kind: ClassVar[str]
    """The name under which an index is saved."""
    settings_type: ClassVar[type]
    score_scale: ClassVar[ScoreScale]
    search_settings: ClassVar[frozenset[str]]
    """Settings that only searches read; `load` may change them."""

    def __init__(self, encoder: Encoder, **settings: Any) -> None:
        methods = ("encode", "encode_queries", "count_tokens")
        check_methods("encoder", encoder, methods, "pass encoder=load_encoder(…)")
        self.encoder = encoder
        try:
            self.settings: Any = self.settings_type(**settings)
        except TypeError as error:
            raise InputError(f"an index of kind {self.kind!r}: {error}") from error

    @abstractmethod
    def read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        """Yield the columns of each document, in order.

        They include "spans" (n, 2), "n_tokens" (n,) and "vectors" (n, d).
        """

    def reads_same(self, known: Document, given: Document) -> bool:
        """Whether `read` makes the same rows of both documents, even if other metadata differs."""
        return known.text == given.text

    @abstractmethod
    def prepare(self, block: Block) -> Any:
        """Compute the state that all searches of a block share; called once for a block that has rows.

        Its attribute "above", if it has one, gives the titles above a row.
        """

    @abstractmethod
    def find(self, view: View, query: str, vector: FloatArray | None, top_k: int) -> Hits:
        """Return the best `top_k` matching rows for a query; see `View.matching`.

        vector: (d,) the query's; default: the query is encoded.
        """

    def kept(self, block: Block) -> Mapping[str, Columns]:
        """The arrays to save with a prepared block that are not columns of its rows, by name."""
        return block.derived

    def direction(self, view: View, query: str, vector: FloatArray | None) -> FloatArray:
        """(d,) float32 vector of unit length of a query; vector: the user's, None to encode the query."""
        if vector is None:
            vector = encode_queries(self.encoder, [query])[0]
        return query_direction(vector, int(view.parts[0].block.columns["vectors"].shape[1]))

    def with_levels(self, hits: Hits, direction: FloatArray) -> Hits:
        """Add the cosines of hits as the packaged encoder might give them. direction: of the query."""
        geometry = geometry_of(self.encoder)
        return hits if geometry is None else hits._replace(parts=geometry.with_levels(hits.parts, direction))

    def tables(
        self, documents: Sequence[Document], show_progress: bool, *, vectors: bool = True
    ) -> Iterator[tuple[Document, SentenceTable]]:
        """Yield each document with its sentences; a document without a word has an empty table.

        vectors: whether to encode the sentences.
        """
        with_text = [document for document in documents if has_words(document.text)]
        tables = build_tables(with_text, self.encoder, show_progress=show_progress, vectors=vectors)
        for document in documents:
            has_rows = has_words(document.text)
            yield document, next(tables) if has_rows else empty_table(document.id, self.encoder.dimension)


class SentenceScheme(Scheme):
    """Makes one row of each sentence, with its vector and the span of its passage.

    The settings are `VectorSettings` with `alpha` and `passages`; a prepared block has `passages`, the
    groups of its rows.
    """

    @property
    def returns(self) -> Returns:
        """The unit that a search returns by default."""
        return "sentence"

    @override
    def read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        for document, table in self.tables(documents, show_progress):
            yield self.columns(document, table)

    def columns(self, document: Document, table: SentenceTable) -> dict[str, Any]:
        """Return the columns of one document; table: its sentences."""
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
        self, view: View, query: str, vector: FloatArray, alpha: float
    ) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """(n,) scores of all sentences, -inf for those to leave out; and the scores behind them, by name.

        Left out is at least what `View.matching` says. vector: (d,) the query's, of unit length.
        alpha: weight of a sentence against its context.
        """

    def find(
        self,
        view: View,
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
        direction = self.direction(view, query, vector)
        scores, parts = self.score(view, query, direction, weight)
        return self.with_levels(Hits.of(_ROWS[returns](view, scores, top_k), scores, parts), direction)


def tokens_of_passage(view: View, row: int) -> int:
    """Return the tokens of the passage that a row is in."""
    part, first, end = _passage_of(view, row)
    return int(part.block.columns["n_tokens"][first:end].sum())


def _passage_of(view: View, row: int) -> tuple[Part, int, int]:
    """The part that a row is in; the first row of its passage and the one behind the last, in the part."""
    part, offset = view.part_of(row)
    passages: Groups = part.prepared.passages
    return part, *passages.rows(int(passages.of_row[row - offset]))


def _best_sentences(view: View, scores: FloatArray, top_k: int) -> IntArray:
    return top_rows(scores, top_k)


def _best_passages(view: View, scores: FloatArray, top_k: int) -> IntArray:
    best_rows = [
        rows.start + part.prepared.passages.best_rows(scores[rows], top_k) for part, rows in view.slices()
    ]
    best = np.concatenate(best_rows)
    rows: IntArray = best[top_rows(scores[best], top_k)]
    return rows


def _best_passage_then_sentences(view: View, scores: FloatArray, top_k: int) -> IntArray:
    best = int(np.argmax(scores))
    _, first, end = _passage_of(view, best)
    first, end = (place + view.part_of(best)[1] for place in (first, end))
    rows = top_rows(scores, top_k - 1 + end - first)
    return np.append(best, rows[(rows < first) | (rows >= end)])[:top_k]


_ROWS: Mapping[Returns, Callable[[View, FloatArray, int], IntArray]] = {
    "sentence": _best_sentences,
    "passage": _best_passages,
    "mixed": _best_passage_then_sentences,
}
