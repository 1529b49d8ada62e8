"""Indexes whose rows are chunks: consecutive whole sentences, cut one way or another."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import Passages, check_passages, passage_ids
from precise_rag.index.base import DocumentIndex
from precise_rag.index.pieces import trimmed
from precise_rag.types import Document, SentenceTable


@dataclass(frozen=True, kw_only=True)
class ChunkSettings:
    """chunks: how sentences are grouped, see `Passages`."""

    chunks: Passages = "100 tokens"

    def __post_init__(self) -> None:
        check_passages(self.chunks)


class ChunkIndex(DocumentIndex):
    """An index of chunks."""

    settings: Any

    def _read(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Columns]:
        for document, table in self._tables(documents, show_progress, vectors=self._sentence_vectors()):
            spans = trimmed(document.text, table.spans)
            groups = Groups.by_change(passage_ids(document, table, self.settings.chunks))
            spans = groups.spans(spans)
            n_tokens = np.bincount(groups.of_row, table.n_tokens, minlength=len(spans)).astype(np.int64)
            texts = [document.text[start:end] for start, end in spans]
            yield {"spans": spans, "n_tokens": n_tokens, **self._describe(texts, table, groups)}

    def _sentence_vectors(self) -> bool:
        """Whether `_describe` needs the sentences' own vectors."""
        return False

    @abstractmethod
    def _describe(self, texts: Sequence[str], table: SentenceTable, groups: Groups) -> Columns:
        """The columns that searching needs, one row a chunk; groups: the sentences of each chunk."""
