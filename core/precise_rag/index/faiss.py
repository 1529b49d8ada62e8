"""Dense search by faiss, with the CPU or the GPU build."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from precise_rag._extras import require
from precise_rag._processes import native_work
from precise_rag.checks import check_text
from precise_rag.errors import IndexFormatError, InputError
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.vectors import read_vectors
from precise_rag.index.dense import DenseIndex, DenseSettings
from precise_rag.index.snapshot import Hits, Snapshot
from precise_rag.index.storage.files import Verify
from precise_rag.protocols import Encoder
from precise_rag.types import Document, FloatArray, IntArray

_EXACT_SHARE = 0.1
"""If less than this share of rows may be found, all of these are compared, without the faiss index."""
_MAX_DELETED = 1 / 3
"""Largest share of deleted entries; with more, the faiss index is built again."""


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


@dataclass(frozen=True, slots=True)
class _Built:
    """A faiss index and the collection that it was built for.

    rows: (ntotal,) row of `collection` that each entry holds, or -1 if its document was deleted.
    """

    index: Any
    collection: Collection
    rows: IntArray


@dataclass(frozen=True, slots=True)
class _Prepared:
    """rows: as in `_Built`; n_alive: number of entries that are not deleted."""

    index: Any
    rows: IntArray
    n_alive: int


class FaissIndex(DenseIndex):
    """Chunks scored by cosine with the query, found by a faiss index.

    New documents are added to the faiss index. Entries of deleted documents stay in it, and searches
    skip them; when they are more than a third, the next search builds the faiss index again from the
    stored vectors. The first search after `load` does so, too, unless you trust the saved one.
    """

    kind = "faiss"
    settings_type: ClassVar[type] = FaissSettings
    search_settings = frozenset({"search", "gpu"})
    settings: FaissSettings

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._built: _Built | None = None

    def _prepare(self, collection: Collection) -> Any:
        faiss = require("faiss", extra="faiss")
        self._built = built = self._grown(faiss, collection)
        index = built.index
        if self.settings.gpu:
            if not getattr(faiss, "get_num_gpus", int)():
                raise InputError("gpu is True but faiss sees no GPU; load or build the index with gpu=False")
            index = faiss.index_cpu_to_all_gpus(index)
        if self.settings.search:
            self._set_parameters(faiss, index)
        return _Prepared(index, built.rows, len(collection))

    def _set_parameters(self, faiss: Any, index: Any) -> None:
        try:
            faiss.ParameterSpace().set_index_parameters(index, self.settings.search)
        except (RuntimeError, TypeError) as error:
            raise InputError(
                f"faiss does not know the search parameters {self.settings.search!r} for "
                f"{self.settings.factory!r}: {str(error).splitlines()[-1]}"
            ) from error

    def _hits(self, snapshot: Snapshot, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        prepared: _Prepared = snapshot.prepared
        matching = snapshot.matching
        n_found = prepared.n_alive if matching is None else int(np.count_nonzero(matching))
        if matching is not None and n_found < _EXACT_SHARE * prepared.n_alive:
            return self._best_of(snapshot, None, np.flatnonzero(matching), query, top_k, vector)
        direction = self._query_vector(query, vector)[None]
        wanted, n_entries = min(top_k, n_found), len(prepared.rows)
        fetched = wanted
        while True:
            with native_work():
                scores, entries = prepared.index.search(direction, fetched)
            reached = (entries[0] >= 0) & (entries[0] < n_entries)
            rows = prepared.rows[entries[0][reached]]
            may_be_found = rows >= 0 if matching is None else (rows >= 0) & matching[rows]
            alive = np.flatnonzero(may_be_found)[:wanted]
            if len(alive) == wanted or not reached.all() or fetched == n_entries:
                break
            fetched = min(2 * fetched, n_entries)  # some of the nearest are deleted, or do not match
        if matching is not None and len(alive) < wanted:  # an approximate index reaches only a part
            return self._best_of(snapshot, None, np.flatnonzero(matching), query, top_k, vector)
        found = scores[0][reached][alive]
        return Hits(rows[alive], found, {"dense": found})

    def _grown(self, faiss: Any, collection: Collection) -> _Built:
        """The faiss index for a collection: the old one with new rows added, or one built again."""
        built = self._built
        if built is not None and built.collection is collection:
            return built
        if built is not None:
            rows = _carried(built, collection)
            if np.count_nonzero(rows < 0) > _MAX_DELETED * len(rows):
                built = None
        if built is None:
            index, rows = self._trained(faiss, collection), np.zeros(0, dtype=np.int64)
        else:
            index = built.index
        is_new = np.ones(len(collection), dtype=bool)
        is_new[rows[rows >= 0]] = False
        new = np.flatnonzero(is_new)
        if len(new):
            if built is not None:  # running searches keep the old one
                index = faiss.clone_index(index)
            at_the_end = len(new) == len(collection) - new[0]
            vectors = read_vectors(collection.columns, slice(new[0], None) if at_the_end else new)
            with native_work():
                index.add(vectors)
        return _Built(index, collection, np.concatenate([rows, new]))

    def _trained(self, faiss: Any, collection: Collection) -> Any:
        vectors = read_vectors(collection.columns, slice(None))
        try:
            index = faiss.index_factory(vectors.shape[1], self.settings.factory, faiss.METRIC_INNER_PRODUCT)
            with native_work():
                index.train(vectors)
        except (RuntimeError, TypeError) as error:
            raise InputError(
                f"faiss cannot build {self.settings.factory!r} from {len(vectors)} vectors of length "
                f"{vectors.shape[1]}: {str(error).splitlines()[-1]}"
            ) from error
        return index

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
                index._use_saved(index._loaded[1])
            except (TypeError, ValueError, RuntimeError) as error:
                raise IndexFormatError(f"{path} is damaged ({error}); build the index again") from error
        return index

    def _extras(self) -> Columns:
        if not len(self._collection) or self.settings.factory == "Flat":  # a copy of the vectors
            return {}
        self._ready(top_k=1)
        assert self._built is not None
        faiss = require("faiss", extra="faiss")
        return {"faiss": faiss.serialize_index(self._built.index), "faiss_rows": self._built.rows}

    def _use_saved(self, extras: Columns) -> None:
        """Take the faiss index that was saved, if there is one. Raises what faiss raises."""
        if "faiss" not in extras:
            return
        index = require("faiss", extra="faiss").deserialize_index(np.array(extras["faiss"]))
        rows = np.array(extras.get("faiss_rows", np.arange(index.ntotal)))
        expected = (len(rows), self._collection.columns["vectors"].shape[1])
        if (index.ntotal, index.d) != expected or rows.max(initial=-1) >= len(self._collection):
            raise ValueError("the faiss index does not hold the vectors of this index")
        self._built = _Built(index, self._collection, rows)


def _carried(built: _Built, collection: Collection) -> IntArray:
    """(ntotal,) row of `collection` that each entry of the faiss index holds, or -1."""
    old = built.collection
    firsts = dict(zip(collection.documents, collection.offsets.tolist(), strict=False))
    starts = np.array(
        [
            firsts[identifier] if _same_text(document, collection.documents.get(identifier)) else -1
            for identifier, document in old.documents.items()
        ],
        dtype=np.int64,
    )
    sizes = np.diff(old.offsets)
    within = np.arange(len(old)) - np.repeat(old.offsets[:-1], sizes)
    first = np.repeat(starts, sizes)
    moved = np.where(first < 0, -1, first + within)
    rows: IntArray = np.append(moved, -1)[built.rows]  # -1, deleted before, stays -1
    return rows


def _same_text(left: Document, right: Document | None) -> bool:
    return right is not None and left.text == right.text
