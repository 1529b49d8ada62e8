"""Which passage each sentence of a document belongs to."""

from functools import cache
from typing import Any, Protocol

import numpy as np

from precise_rag.errors import InputError
from precise_rag.index.context import Groups
from precise_rag.types import Chunk, Document, IntArray, SentenceTable


class Segments(Protocol):
    """What cuts a document where the topic changes: a `Segmenter` or `GreedySegmenter`."""

    @property
    def name(self) -> str:
        """What a saved index remembers it by."""
        ...

    def segment(self, text: Document, table: SentenceTable | None = None) -> list[Chunk]:
        """Chunks of whole sentences that tile the text."""
        ...


Passages = str | int | Segments
"""How sentences are grouped: "paragraphs"; "segments" or the name of a trained segmenter; a segmenter;
or a number of sentences."""


def check_passages(passages: Passages) -> None:
    """Raises InputError if `passages` is none of the ways above."""
    named = isinstance(passages, str) and passages
    counted = isinstance(passages, int) and passages >= 1
    if not (named or counted or hasattr(passages, "segment")):
        raise InputError(
            f"passages is {passages!r}; expected 'paragraphs', 'segments', a number of sentences "
            "from 1 up, or a segmenter"
        )


def passage_ids(document: Document, table: SentenceTable, passages: Passages) -> IntArray:
    """(n,) the passage of each sentence, ascending from 0."""
    if passages == "paragraphs":
        return table.paragraphs
    if isinstance(passages, int):
        return np.arange(len(table), dtype=np.int64) // passages
    segmenter = _pretrained(passages) if isinstance(passages, str) else passages
    starts = np.array([chunk.start for chunk in segmenter.segment(document, table)], dtype=np.int64)
    ids: IntArray = np.searchsorted(starts, table.spans[:, 0], side="right") - 1
    return ids


def passage_spans(spans: IntArray, ids: IntArray) -> IntArray:
    """(n, 2) for each sentence the span of its passage."""
    groups = Groups.by_change(ids)
    return groups.spans(spans)[groups.of_row]


@cache
def _pretrained(name: str) -> Any:
    from precise_rag.segmentation import Segmenter

    return Segmenter.from_pretrained("small" if name == "segments" else name)
