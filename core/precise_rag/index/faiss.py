"""Dense search by faiss, with the CPU or the GPU build."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from precise_rag._extras import require
from precise_rag.checks import check_text
from precise_rag.errors import IndexFormatError, InputError
from precise_rag.index.arrays.collection import BoolArray, Columns
from precise_rag.index.arrays.faiss_rows import FaissRows, check_faiss
from precise_rag.index.arrays.products import NumpyProducts, Products
from precise_rag.index.arrays.vectors import read_vectors
from precise_rag.index.dense import DenseIndex, DenseSettings, best_hits
from precise_rag.index.segments import Part, Segment
from precise_rag.index.snapshot import Hits, Snapshot
from precise_rag.index.storage.files import Verify
from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray

EXACT_ROWS = 10_000
"""A segment with fewer rows has no faiss index: all of its rows are compared."""
_EXACT_SHARE = 0.1
"""If less than this share of rows may be found, all of these are compared, without the faiss index."""


@dataclass(frozen=True, kw_only=True)
class FaissSettings(DenseSettings):
    """Settings of FaissIndex; see also `DenseSettings`.

    factory: faiss's factory string, for example "Flat", "HNSW32", "IVF1024,PQ48" or "SQ8".
    search: faiss's search parameters, for example "nprobe=16" or "efSearch=64".
    gpu: search on all GPUs; needs a GPU build of faiss.
    """

    factory: str = "Flat"
    search: str = ""
    gpu: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_text("factory", self.factory)
        check_text("search", self.search)
        if self.backend != "numpy":
            raise InputError(
                f"backend must be 'numpy' in a FaissIndex, got {self.backend!r}; for GPUs pass gpu=True"
            )


class FaissIndex(DenseIndex):
    """Chunks scored by cosine with the query, found by a faiss index.

    Each large segment of documents has a faiss index of its own, which is built when the segment is first
    searched after a change or after `load`, unless you trust the one that was saved. New documents are
    compared one by one until there are enough of them for a faiss index; searches skip deleted ones.
    """

    kind = "faiss"
    settings_type: ClassVar[type] = FaissSettings
    search_settings = frozenset({"search", "gpu"})
    settings: FaissSettings

    def __init__(self, encoder: Encoder | None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        check_faiss(self.settings.gpu)

    def _prepare(self, segment: Segment) -> Any:
        if len(segment.collection) < EXACT_ROWS:
            return NumpyProducts(segment.collection.columns)
        vectors = read_vectors(segment.collection.columns, slice(None))
        settings = self.settings
        return FaissRows.of(vectors, settings.factory, settings.search, settings.gpu)

    def _products(self, part: Part) -> Products:
        return NumpyProducts(part.segment.collection.columns)

    def _hits(self, snapshot: Snapshot, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        direction = self._query_vector(query, vector)
        found = [self._hits_of(part, rows, snapshot, direction, top_k) for part, rows in snapshot.slices()]
        rows, scores = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return best_hits(rows, scores, top_k)

    def _hits_of(
        self, part: Part, rows: slice, snapshot: Snapshot, direction: FloatArray, top_k: int
    ) -> tuple[Any, FloatArray]:
        """The best rows of a part, and their scores."""
        matching: BoolArray | None = None if snapshot.matching is None else snapshot.matching[rows]
        n_rows = rows.stop - rows.start
        n_found = n_rows if matching is None else int(np.count_nonzero(matching))
        prepared = part.prepared
        if isinstance(prepared, FaissRows) and n_found >= _EXACT_SHARE * n_rows:
            own, scores = prepared.best(direction, top_k, matching)
            if matching is None or len(own) == min(top_k, n_found):
                return own + rows.start, scores
        every = (
            np.arange(rows.start, rows.stop) if matching is None else np.flatnonzero(matching) + rows.start
        )
        hits = self._best_of(snapshot, every, direction, top_k)
        return hits.rows, hits.scores

    @classmethod
    def load(
        cls,
        path: str | Path,
        encoder: Encoder | None = None,
        *,
        verify: Verify = "full",
        trusted: bool = False,
        **settings: Any,
    ) -> Self:
        """Load a saved index; see `DocumentIndex.load`.

        trusted: use the faiss index that was saved. faiss reads it without checks, so somebody who made
            it to do harm can harm the process: pass True only for files of your own. By default the
            first search builds the faiss index again, from the vectors that were checked.
        """
        index = super().load(path, encoder, verify=verify, **settings)
        if trusted:
            try:
                for part in index._parts:
                    if "faiss" in part.segment.extras:
                        part.segment.prepared = index._saved_rows(part.segment)
            except (TypeError, ValueError, RuntimeError) as error:
                raise IndexFormatError(f"{path} is damaged ({error}); build the index again") from error
        return index

    def _extras(self, segment: Segment) -> Columns:
        prepared = segment.prepared
        if not isinstance(prepared, FaissRows) or self.settings.factory == "Flat":  # a copy of the vectors
            return segment.extras
        faiss = require("faiss", extra="faiss")
        return {**segment.extras, "faiss": faiss.serialize_index(prepared.index)}

    def _saved_rows(self, segment: Segment) -> FaissRows:
        """The faiss index that was saved with a segment. Raises what faiss raises."""
        index = require("faiss", extra="faiss").deserialize_index(np.array(segment.extras["faiss"]))
        if (index.ntotal, index.d) != segment.collection.columns["vectors"].shape:
            raise ValueError("the faiss index does not hold the vectors of this index")
        return FaissRows.around(index, self.settings.factory, self.settings.search, self.settings.gpu)
