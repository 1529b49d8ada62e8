"""The base class of indexes that score by BM25."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.index.arrays.bm25_matrix import BM25Matrix
from precise_rag.index.arrays.collection import Collection, Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.headings import Headings
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.base import DocumentIndex
from precise_rag.protocols import Encoder

_WORDS = ("words.values", "heading_words.values")
"""Columns that hold numbers of words."""


class BM25Base(DocumentIndex):
    """An index with a vocabulary and BM25 matrices; both are saved with it.

    The settings must be `BM25Settings`, and each row must have the columns of `Vocabulary.columns`.
    """

    def __init__(self, encoder: Encoder | None = None, **settings: Any) -> None:
        super().__init__(encoder, **settings)
        self._vocabulary = Vocabulary(self.settings.stop_words)

    def __getstate__(self) -> dict[str, Any]:
        with self._writing:  # a running `add` learns words
            words = self._vocabulary.words()
            return {**super().__getstate__(), "_vocabulary": Vocabulary(self.settings.stop_words, words)}

    @abstractmethod
    def _matrices(self, prepared: Any) -> Mapping[str, BM25Matrix]:
        """The matrices of a prepared state, by the names they were made with."""

    def _matrix(
        self,
        collection: Collection,
        name: str,
        groups: Groups | None = None,
        headings: Headings | None = None,
    ) -> BM25Matrix:
        """BM25 over rows or groups of rows; name: what its arrays are saved under."""
        saved = self._saved(collection, name)
        return BM25Matrix.of(
            collection.columns, len(self._vocabulary), self.settings, groups, saved, headings
        )

    def _undone_on_error(self) -> AbstractContextManager[object]:
        return self._vocabulary.undone_on_error()

    def _manifest(self) -> dict[str, Any]:
        return {**super()._manifest(), "vocabulary": self._vocabulary.words()}

    def _saved_state(self) -> tuple[dict[str, Any], Collection, Columns]:
        """As they are, without the words that no row has any more; the rest is numbered again."""
        manifest, collection, extras = super()._saved_state()
        texts = {name: collection.columns[name] for name in _WORDS if name in collection.columns}
        used = np.zeros(len(manifest["vocabulary"]), dtype=np.bool_)
        for values in texts.values():
            used[values] = True
        if used.all():
            return manifest, collection, extras
        words = [word for word, kept in zip(manifest["vocabulary"], used.tolist(), strict=True) if kept]
        numbers = (np.cumsum(used) - 1).astype(np.int32)
        renumbered = {name: numbers[values] for name, values in texts.items()}
        collection = replace(collection, columns={**collection.columns, **renumbered})
        extras = {n: _without_unused(a, used) if n.endswith(".indptr") else a for n, a in extras.items()}
        return {**manifest, "vocabulary": words}, collection, extras

    def _extras(self) -> Columns:
        if not len(self._collection):
            return {}
        matrices = self._matrices(self._ready(top_k=1).prepared)
        return {
            f"{name}.{part}": array
            for name, matrix in matrices.items()
            for part, array in matrix.arrays.items()
        }

    def _restore(self, manifest: Mapping[str, Any], extras: Columns) -> None:
        self._vocabulary = Vocabulary(self.settings.stop_words, manifest["vocabulary"])


def _without_unused(indptr: npt.NDArray[Any], used: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """The column starts of a sparse matrix without its unused columns, which are empty."""
    kept = np.flatnonzero(used[: len(indptr) - 1])
    rest: npt.NDArray[Any] = indptr[np.append(kept, len(indptr) - 1)]
    return rest
