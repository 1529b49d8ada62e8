"""The base class of all indexes."""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from precise_rag.encoded import encode_queries
from precise_rag.encoders import FrameworkEncoder
from precise_rag.errors import EmptyIndexError
from precise_rag.filters import Filter, as_filter
from precise_rag.index.queries import check_search, query_direction
from precise_rag.index.saved_base import SavedIndex
from precise_rag.index.snapshot import Hits, Snapshot
from precise_rag.types import Candidate, FloatArray, ScoreScale, check_query


class DocumentIndex(SavedIndex):
    """A searchable collection of documents.

    Documents are kept in segments, see `precise_rag.index.segments`: a change costs what it changes, in
    memory, in the folder and at the next search.

    Subclasses define how a document becomes rows (`_read`), what to compute once from the rows of a
    segment (`_prepare`) and how rows are scored (`_hits`).

    Threads may search while another one adds or deletes documents: a search uses the state before or
    after the change.
    """

    score_scale: ClassVar[ScoreScale]

    def search(
        self,
        query: str,
        top_k: int = 10,
        *,
        filter: Filter | Mapping[str, Any] | None = None,
        vector: FloatArray | None = None,
    ) -> list[Candidate]:
        """Return at most `top_k` candidates, best first.

        query: the query as text.
        top_k: maximum number of candidates; at least 1.
        filter: what the documents of all candidates must meet, see `as_filter`; default: nothing.
        vector: (d,) the query's vector; default: `query` is encoded.
        Raises EmptyIndexError if the index holds no text.
        """
        snapshot = self._ready(top_k, query, filter)
        if snapshot.matches_nothing:
            return []
        hits = self._hits(snapshot, query, top_k, vector).within(snapshot.matching)
        return snapshot.candidates(hits, self.score_scale)

    async def asearch(self, query: str, top_k: int = 10, **options: Any) -> list[Candidate]:
        """Run `search` without blocking the event loop, with the same options.

        The query is encoded by the asynchronous method of a framework's embedding object, if it is one.
        """
        if isinstance(self.encoder, FrameworkEncoder) and options.get("vector") is None:
            (options["vector"],) = await self.encoder.aencode_queries([check_query(query)])
        return await asyncio.to_thread(self.search, query, top_k, **options)

    @abstractmethod
    def _hits(self, snapshot: Snapshot, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        """Find the best rows for a query, among those that match; see `Snapshot.matching`."""

    def _ready(
        self, top_k: int, query: str = "", filter: Filter | Mapping[str, Any] | None = None
    ) -> Snapshot:
        """The present state, for a search. Raises InputError if an argument is not valid."""
        check_search(query, top_k)
        wanted = None if filter is None else as_filter(filter)
        snapshot = self._prepared_snapshot()
        if not len(self):
            raise EmptyIndexError(
                f"the index holds {len(self.document_ids)} documents and no text; add documents first"
            )
        if wanted is None:
            return snapshot
        if getattr(self.settings, "filter_statistics", "shared") == "shared":
            return snapshot.within(wanted)
        with self._preparing:
            return snapshot.holding_only(wanted, self._prepare)

    def _query_vector(self, query: str, vector: FloatArray | None) -> FloatArray:
        """(d,) float32 vector of unit length."""
        if vector is None:
            assert self.encoder is not None
            vector = encode_queries(self.encoder, [query])[0]
        return query_direction(vector, self._dimension())

    def _dimension(self) -> int:
        """Length of the vectors."""
        return int(self._parts[0].segment.collection.columns["vectors"].shape[1])
