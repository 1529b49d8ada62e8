"""The base class of indexes whose rows are chunks."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from precise_rag.index.arrays.collection import Columns
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import Passages, check_passages, passage_ids
from precise_rag.index.arrays.spans import trim_spans
from precise_rag.index.arrays.words import Vocabulary
from precise_rag.index.base import DocumentIndex
from precise_rag.types import Document, SentenceTable


@dataclass(frozen=True, kw_only=True)
class ChunkSettings:
    """Setting of indexes of chunks.

    chunks: how sentences are grouped into chunks; see `Passages`.
    """

    chunks: Passages = "100 tokens"

    def __post_init__(self) -> None:
        check_passages("chunks", self.chunks)


class ChunkIndex(DocumentIndex):
    """An index of chunks; a chunk is one or more consecutive whole sentences."""

    settings: Any

    def _read(
        self, documents: Sequence[Document], words: Vocabulary, show_progress: bool
    ) -> Iterator[Columns]:
        for document, table in self._tables(documents, show_progress, vectors=self._needs_sentence_vectors()):
            groups = Groups.by_change(passage_ids(document, table, self.settings.chunks))
            spans = groups.spans(trim_spans(document.text, table.spans))
            n_tokens = np.bincount(groups.of_row, table.n_tokens, minlength=len(spans)).astype(np.int64)
            texts = [document.text[start:end] for start, end in spans]
            yield {"spans": spans, "n_tokens": n_tokens, **self._describe(texts, table, groups, words)}

    def _needs_sentence_vectors(self) -> bool:
        """Whether `_describe` reads the vectors of sentences."""
        return False

    @abstractmethod
    def _describe(
        self, texts: Sequence[str], table: SentenceTable, groups: Groups, words: Vocabulary
    ) -> Columns:
        """The columns of one document that searches read, one row per chunk.

        texts: text of each chunk.
        table: the document's sentences.
        groups: the sentences of each chunk.
        words: numbers the words of columns that hold any.
        """
