"""Rows that are chunks: one or more consecutive whole sentences."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import Passages, check_passages, passage_ids
from precise_rag.sentences.words import trim_spans
from precise_rag.types import Document, SentenceTable


@dataclass(frozen=True, kw_only=True)
class ChunkSettings:
    """Setting of indexes of chunks.

    chunks: how sentences are grouped into chunks; see `Passages`.
    """

    chunks: Passages = "100 tokens"

    def __post_init__(self) -> None:
        check_passages("chunks", self.chunks)


class DocumentChunks(NamedTuple):
    """The chunks of one document.

    texts: text of each chunk.
    table: the document's sentences.
    groups: the sentences of each chunk.
    columns: "spans" and "n_tokens" of the chunks.
    """

    texts: list[str]
    table: SentenceTable
    groups: Groups
    columns: dict[str, Any]


def cut_chunks(
    tables: Iterable[tuple[Document, SentenceTable]], chunks: Passages
) -> Iterator[DocumentChunks]:
    """Yield the chunks of each document; tables: the documents with their sentences."""
    for document, table in tables:
        groups = Groups.by_change(passage_ids(document, table, chunks))
        spans = groups.spans(trim_spans(document.text, table.spans))
        n_tokens = np.bincount(groups.of_row, table.n_tokens, minlength=len(spans)).astype(np.int64)
        texts = [document.text[start:end] for start, end in spans]
        yield DocumentChunks(texts, table, groups, {"spans": spans, "n_tokens": n_tokens})
