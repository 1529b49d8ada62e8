"""Which passage each sentence of a document belongs to."""

import re
from functools import cache
from typing import Any, Protocol

import numpy as np

from precise_rag.errors import InputError
from precise_rag.index.arrays.groups import Groups
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
"""How sentences are grouped: "sentences" (not at all); "paragraphs"; "200 tokens" (or another number),
filled with whole paragraphs, and with whole sentences where a paragraph is longer; a number of
sentences; "segments", cut by the packaged segmenter to 100 to 200 tokens; the name of another trained
segmenter; or a segmenter."""

_TOKENS = re.compile(r"([1-9][0-9]*) tokens")


def check_passages(passages: Passages) -> None:
    """Raises InputError if `passages` is none of the ways above."""
    named = isinstance(passages, str) and passages
    counted = isinstance(passages, int) and passages >= 1
    if not (named or counted or hasattr(passages, "segment")):
        raise InputError(
            f"passages is {passages!r}; expected 'paragraphs', '200 tokens', 'segments', "
            "a number of sentences from 1 up, or a segmenter"
        )


def passage_ids(document: Document, table: SentenceTable, passages: Passages) -> IntArray:
    """(n,) the passage of each sentence, ascending from 0."""
    if passages == "paragraphs":
        return table.paragraphs
    if passages == "sentences":
        return np.arange(len(table), dtype=np.int64)
    if isinstance(passages, int):
        return np.arange(len(table), dtype=np.int64) // passages
    if isinstance(passages, str) and (limit := _TOKENS.fullmatch(passages)):
        return _packed(table, int(limit[1]))
    segmenter = _pretrained(passages) if isinstance(passages, str) else passages
    starts = np.array([chunk.start for chunk in segmenter.segment(document, table)], dtype=np.int64)
    ids: IntArray = np.searchsorted(starts, table.spans[:, 0], side="right") - 1
    return ids


def _packed(table: SentenceTable, max_tokens: int) -> IntArray:
    """(n,) passages of at most `max_tokens`, but for a sentence that is longer on its own. A paragraph
    that is too long begins a passage."""
    paragraphs = Groups.by_change(table.paragraphs)
    is_long = np.bincount(paragraphs.of_row, table.n_tokens)[paragraphs.of_row] > max_tokens
    parts = Groups.by_change(table.paragraphs, np.where(is_long, np.arange(len(table)), -1))
    sizes = np.bincount(parts.of_row, table.n_tokens).tolist()
    opens = is_long[parts.starts] & np.isin(parts.starts, paragraphs.starts)
    ids, passage, filled = [], 0, 0
    for n_tokens, is_new in zip(sizes, opens.tolist(), strict=True):
        if filled and (is_new or filled + n_tokens > max_tokens):
            passage, filled = passage + 1, 0
        ids.append(passage)
        filled += n_tokens
    return np.array(ids, dtype=np.int64)[parts.of_row]


@cache
def _pretrained(name: str) -> Any:
    from precise_rag.segmentation import Segmenter

    if name == "segments":
        return Segmenter.from_pretrained("small", max_tokens=200, min_tokens=100)
    return Segmenter.from_pretrained(name)
