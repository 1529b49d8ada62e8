"""What sets the kinds of index apart: the rows that they make of documents, and how they score these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from precise_rag.checks import check_methods
from precise_rag.encoded import encode_queries
from precise_rag.encoders.geometry import geometry_of
from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.queries import query_direction
from precise_rag.index.rows.segments import Segment
from precise_rag.index.rows.snapshot import Hits, Snapshot
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import build_tables, empty_table
from precise_rag.sentences.words import has_words
from precise_rag.types import Document, FloatArray, ScoreScale, SentenceTable


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
    stop_words: frozenset[str] = frozenset()
    """Words that the vocabulary of an index leaves out."""

    def __init__(self, encoder: Encoder, **settings: Any) -> None:
        methods = ("encode", "encode_queries", "count_tokens")
        check_methods("encoder", encoder, methods, "pass encoder=load_encoder(…)")
        self.encoder = encoder
        try:
            self.settings: Any = self.settings_type(**settings)
        except TypeError as error:
            raise InputError(f"an index of kind {self.kind!r}: {error}") from error

    @abstractmethod
    def read(
        self, documents: Sequence[Document], words: Vocabulary, show_progress: bool
    ) -> Iterator[Columns]:
        """Yield the columns of each document, in order; they include "spans" (n, 2) and "n_tokens" (n,).

        words: numbers the words of columns that hold any; empty at first.
        """

    def reads_same(self, known: Document, given: Document) -> bool:
        """Whether `read` makes the same rows of both documents, even if other metadata differs."""
        return known.text == given.text

    @abstractmethod
    def prepare(self, segment: Segment) -> Any:
        """Compute the state that all searches of a segment share; called once for a segment that has rows."""

    @abstractmethod
    def find(self, snapshot: Snapshot, query: str, vector: FloatArray | None, top_k: int) -> Hits:
        """Return the best `top_k` matching rows for a query; see `Snapshot.matching`.

        vector: (d,) the query's; default: the query is encoded.
        """

    def make_ready(self, segment: Segment) -> None:
        """Prepare a segment that has rows, unless it is prepared."""
        if segment.prepared is None:
            segment.prepared = self.prepare(segment)

    def kept(self, segment: Segment) -> Columns:
        """The arrays to save with a prepared segment that are not columns of its rows."""
        return segment.extras

    def direction(self, snapshot: Snapshot, query: str, vector: FloatArray | None) -> FloatArray:
        """(d,) float32 vector of unit length of a query; vector: the user's, None to encode the query."""
        if vector is None:
            vector = encode_queries(self.encoder, [query])[0]
        dimension = snapshot.parts[0].segment.collection.columns["vectors"].shape[1]
        return query_direction(vector, int(dimension))

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
