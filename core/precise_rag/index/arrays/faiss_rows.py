"""Vectors in a faiss index, on the CPU or on GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag._processes import native_work
from precise_rag.errors import InputError
from precise_rag.index.arrays.collection import BoolArray
from precise_rag.types import FloatArray, IntArray


def check_faiss(gpu: bool) -> None:
    """Raise MissingExtra if faiss is not installed, and InputError if it is to use a GPU and cannot."""
    faiss = require("faiss", extra="faiss-gpu" if gpu else "faiss")
    if not gpu:
        return
    if not hasattr(faiss, "index_cpu_to_all_gpus"):
        raise InputError(
            "gpu is True but the installed faiss has no GPU support; pass gpu=False, or replace it: "
            "pip uninstall faiss-cpu && pip install 'precise-rag[faiss-gpu]'"
        )
    if not faiss.get_num_gpus():
        raise InputError("gpu is True but faiss sees no GPU; pass gpu=False")


@dataclass(frozen=True, slots=True)
class FaissRows:
    """A faiss index of the rows of a segment, by inner product.

    index: the faiss index; entry i is row i.
    searched: the same, or its copy on GPUs.
    """

    index: Any
    searched: Any

    @classmethod
    def of(cls, vectors: FloatArray, factory: str, search: str = "", gpu: bool = False) -> FaissRows:
        """Train and fill a faiss index with (n, d) vectors.

        factory: faiss's factory string. search: its search parameters. gpu: search on all GPUs.
        Raises InputError for what faiss does not accept.
        """
        faiss = require("faiss", extra="faiss")
        try:
            index = faiss.index_factory(vectors.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
            with native_work():
                index.train(vectors)
                index.add(vectors)
        except (RuntimeError, TypeError) as error:
            raise InputError(
                f"faiss cannot build {factory!r} from {len(vectors)} vectors of length {vectors.shape[1]}: "
                f"{str(error).splitlines()[-1]}"
            ) from error
        return cls.around(index, factory, search, gpu)

    @classmethod
    def around(cls, index: Any, factory: str, search: str = "", gpu: bool = False) -> FaissRows:
        """Take a faiss index that is filled; see `of`."""
        faiss = require("faiss", extra="faiss")
        check_faiss(gpu)
        searched = faiss.index_cpu_to_all_gpus(index) if gpu else index
        if search:
            try:
                faiss.ParameterSpace().set_index_parameters(searched, search)
            except (RuntimeError, TypeError) as error:
                raise InputError(
                    f"faiss does not know the search parameters {search!r} for {factory!r}: "
                    f"{str(error).splitlines()[-1]}"
                ) from error
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
            with native_work():
                scores, rows = self.searched.search(direction[None], fetched)
            reached = rows[0] >= 0
            found, products = rows[0][reached], scores[0][reached]
            if matching is not None:
                kept = matching[found]
                found, products = found[kept], products[kept]
            if len(found) >= wanted or not reached.all() or fetched == n_rows:
                return found[:wanted], products[:wanted]
            fetched = min(2 * fetched, n_rows)  # some of the nearest do not match
