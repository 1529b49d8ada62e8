"""Dense search by faiss, whichever build is installed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.index.base import Hits, View
from precise_rag.index.collection import Collection, Columns
from precise_rag.index.dense import DenseIndex, DenseSettings
from precise_rag.index.vectors import read_vectors
from precise_rag.types import FloatArray


@dataclass(frozen=True, kw_only=True)
class FaissSettings(DenseSettings):
    """factory: faiss's description of the index, for instance "Flat", "HNSW32", "IVF1024,PQ48" or
    "SQ8". search: its parameters for searching, for instance "nprobe=16" or "efSearch=64". gpu: search
    on all GPUs, with a faiss build that can."""

    factory: str = "Flat"
    search: str = ""
    gpu: bool = False


class FaissIndex(DenseIndex):
    """Chunks by cosine with the query, found by a faiss index of the caller's choice.

    Added documents are added to the faiss index as well; after a deletion it is built again from the vectors
    kept here, at the next search. A saved index brings its faiss index with it.
    """

    kind = "faiss"
    settings_type: ClassVar[type] = FaissSettings
    settings: FaissSettings

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._built: tuple[Collection, Any] | None = None

    def _prepare(self, collection: Collection) -> Any:
        faiss = require("faiss", extra="faiss")
        index = None
        if self._built is not None and _extends(collection, self._built[0]):
            index = self._built[1] if collection is self._built[0] else faiss.clone_index(self._built[1])
        if index is None:
            index = self._trained(faiss, collection)
        if index.ntotal < len(collection):
            index.add(read_vectors(collection.columns, slice(index.ntotal, None)))
        self._built = collection, index
        if self.settings.gpu:
            index = faiss.index_cpu_to_all_gpus(index)
        if self.settings.search:
            faiss.ParameterSpace().set_index_parameters(index, self.settings.search)
        return index

    def _hits(self, view: View, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        query_vector = self._query_vector(query, vector)
        scores, rows = view.prepared.search(query_vector[None], min(top_k, len(view.collection)))
        found = rows[0] >= 0
        return Hits(rows[0][found], scores[0][found], {"dense": scores[0][found]})

    def _trained(self, faiss: Any, collection: Collection) -> Any:
        vectors = read_vectors(collection.columns, slice(None))
        try:
            index = faiss.index_factory(vectors.shape[1], self.settings.factory, faiss.METRIC_INNER_PRODUCT)
            index.train(vectors)
        except RuntimeError as error:
            raise InputError(
                f"faiss cannot build {self.settings.factory!r} from {len(vectors)} vectors of length "
                f"{vectors.shape[1]}: {str(error).splitlines()[-1]}"
            ) from error
        return index

    def _extras(self) -> Columns:
        if not len(self._collection):
            return {}
        self._ready(top_k=1)
        assert self._built is not None
        return {"faiss": require("faiss", extra="faiss").serialize_index(self._built[1])}

    def _restore(self, manifest: Mapping[str, Any], extras: Columns) -> None:
        if "faiss" in extras:
            faiss = require("faiss", extra="faiss")
            self._built = self._collection, faiss.deserialize_index(np.array(extras["faiss"]))


def _extends(collection: Collection, earlier: Collection) -> bool:
    """Whether `collection` has the same rows as `earlier`, and perhaps more after them."""
    pairs = zip(earlier.documents.values(), collection.documents.values(), strict=False)
    return len(collection.documents) >= len(earlier.documents) and all(
        old.id == new.id and old.text == new.text for old, new in pairs
    )
