"""faiss indexes over the vectors of a shard, on the CPU or on GPUs."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from precise_rag._extras import require
from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.types import BoolArray, FloatArray, IntArray

_BACKEND = re.compile(r"faiss(?P<gpu>-gpu)?(:(?P<factory>[^@]+)(@(?P<search>.+))?)?")
_MOST_ON_GPU = 2048
"""Rows that faiss finds on a GPU for one query at most."""


class FaissBackend(NamedTuple):
    """Which faiss index finds the nearest rows.

    factory: faiss's factory string, for example "Flat", "HNSW32", "IVF1024,PQ48" or "SQ8".
    search: faiss's search parameters, for example "nprobe=16" or "efSearch=64".
    gpu: search on all GPUs; needs a GPU build of faiss.
    """

    factory: str = "Flat"
    search: str = ""
    gpu: bool = False

    @classmethod
    def of(cls, backend: str) -> Self | None:
        """Read the setting "faiss", "faiss:factory" or "faiss:factory@search"; "faiss-gpu" likewise.

        None for "numpy". Raises InputError for anything else.
        """
        if backend == "numpy":
            return None
        parts = _BACKEND.fullmatch(backend) if isinstance(backend, str) else None
        if parts is None:
            raise InputError(
                f"backend must be 'numpy' or an index of faiss like 'faiss:HNSW32', got {shown(backend)}"
            )
        return cls(parts["factory"] or "Flat", parts["search"] or "", parts["gpu"] is not None)

    def empty(self, d: int) -> Any:
        """A faiss index without vectors, of length d.

        Raises MissingExtra if faiss is not installed, and InputError if it is to use a GPU and cannot, or
        does not accept the factory or the parameters.
        """
        faiss = require("faiss", extra="faiss-gpu" if self.gpu else "faiss")
        if self.gpu and not hasattr(faiss, "index_cpu_to_all_gpus"):
            raise InputError(
                "gpu is True but the installed faiss has no GPU support; pass gpu=False, or replace it: "
                "pip uninstall faiss-cpu && pip install 'precise-rag[faiss-gpu]'"
            )
        if self.gpu and not faiss.get_num_gpus():
            raise InputError("gpu is True but faiss sees no GPU; pass gpu=False")
        with _refused(f"faiss cannot build {self.factory!r} for vectors of length {d}: "):
            index = faiss.index_factory(d, self.factory, faiss.METRIC_INNER_PRODUCT)
        with _refused(f"faiss does not know the search parameters {self.search!r} for {self.factory!r}: "):
            faiss.ParameterSpace().set_index_parameters(index, self.search)
        return index


@dataclass(frozen=True, slots=True)
class FaissRows:
    """A faiss index of the rows of a segment, by inner product.

    index: the faiss index; entry i is row i.
    searched: the same, or its copy on GPUs, which finds at most 2,048 rows; for more, `index` is searched.
    """

    index: Any
    searched: Any

    @classmethod
    def of(cls, vectors: FloatArray, backend: FaissBackend) -> Self:
        """Fill a faiss index with (n, d) vectors. Raises InputError for what faiss does not accept."""
        faiss = require("faiss", extra="faiss")
        n, d = vectors.shape
        index = backend.empty(d)
        with _refused(f"faiss cannot build {backend.factory!r} from {n} vectors of length {d}: "):
            index.train(vectors)
            index.add(vectors)
        searched, factory = index, backend.factory
        if backend.gpu:
            advice = "; pass gpu=False, or another factory, such as 'IVF1024,Flat'"
            with _refused(f"faiss has no {factory!r} for GPUs: ", advice):
                searched = faiss.index_cpu_to_all_gpus(index)
                if backend.search:
                    faiss.GpuParameterSpace().set_index_parameters(searched, backend.search)
        return cls(index, searched)

    def best(
        self, direction: FloatArray, top_k: int, matching: BoolArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """At most `top_k` rows, best first, and their products with a query's vector (d,).

        matching: (n,) whether each row may be found; None for all.
        An approximate index can return fewer rows than there are.
        """
        n_rows = self.index.ntotal
        n_found = n_rows if matching is None else int(np.count_nonzero(matching))
        wanted = fetched = min(top_k, n_found)
        if not wanted:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        while True:
            searched = self.searched if fetched <= _MOST_ON_GPU else self.index
            scores, rows = searched.search(direction[None], fetched)
            reached = rows[0] >= 0
            near, products = rows[0][reached], scores[0][reached]
            if matching is not None:
                kept = matching[near]
                near, products = near[kept], products[kept]
            if len(near) >= wanted or not reached.all() or fetched == n_rows:
                order = np.lexsort((near, -products))[:wanted]  # equal scores keep row order
                return near[order], products[order]
            fetched = min(2 * fetched, n_rows)  # some of the nearest do not match


@contextmanager
def _refused(what: str, advice: str = "") -> Iterator[None]:
    """Raise InputError with the reason that faiss gives, between these words."""
    try:
        yield
    except (RuntimeError, TypeError) as error:
        raise InputError(f"{what}{str(error).splitlines()[-1]}{advice}") from error
