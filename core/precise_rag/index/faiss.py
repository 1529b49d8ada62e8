"""Dense search by faiss, with the CPU or the GPU build."""

from dataclasses import dataclass
from typing import ClassVar

from precise_rag.checks import check_text
from precise_rag.errors import InputError
from precise_rag.index.arrays.faiss_rows import FaissBackend
from precise_rag.index.dense import DenseIndex, DenseSettings


@dataclass(frozen=True, kw_only=True)
class FaissSettings(DenseSettings):
    """Settings of FaissIndex; see also `DenseSettings`.

    factory, search, gpu: as in `FaissBackend`.
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
    It is `DenseIndex(backend="faiss:…")` with a setting for each part.
    """

    kind = "faiss"
    settings_type: ClassVar[type] = FaissSettings
    search_settings = frozenset({"search", "gpu"})
    settings: FaissSettings

    def _faiss(self) -> FaissBackend:
        return FaissBackend(self.settings.factory, self.settings.search, self.settings.gpu)
