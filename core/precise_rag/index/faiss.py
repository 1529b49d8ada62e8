"""Dense search by faiss, whichever build is installed."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.index.base import Hits, View
from precise_rag.index.collection import Collection
from precise_rag.index.dense import DenseIndex, DenseSettings
from precise_rag.types import FloatArray


@dataclass(frozen=True, kw_only=True)
class FaissSettings(DenseSettings):
    """factory: faiss's description of the index, for instance "Flat", "HNSW32", "IVF1024,PQ48" or "SQ8".
    search: parameters for the search, for instance {"nprobe": 16}."""

    factory: str = "Flat"


class FaissIndex(DenseIndex):
    """Chunks by cosine with the query, found by a faiss index."""

    kind = "faiss"
    settings_type: ClassVar[type] = FaissSettings

    def _prepare(self, collection: Collection) -> Any:
        faiss = require("faiss", extra="faiss")
        vectors = np.ascontiguousarray(collection.columns["vectors"], dtype=np.float32)
        try:
            index = faiss.index_factory(vectors.shape[1], self.settings.factory, faiss.METRIC_INNER_PRODUCT)
            index.train(vectors)
        except RuntimeError as error:
            raise InputError(
                f"faiss cannot build {self.settings.factory!r} from {len(vectors)} vectors of length "
                f"{vectors.shape[1]}: {str(error).splitlines()[-1]}"
            ) from error
        index.add(vectors)
        return index

    def _hits(self, view: View, query: str, top_k: int, vector: FloatArray | None) -> Hits:
        query_vector = self._query_vector(query, vector)
        scores, rows = view.prepared.search(query_vector[None], min(top_k, len(view.collection)))
        found = rows[0] >= 0
        return Hits(rows[0][found], scores[0][found], {"dense": scores[0][found]})
