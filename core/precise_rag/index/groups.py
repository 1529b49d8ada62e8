"""Consecutive rows in groups: the sentences of a chunk or of a passage."""

import re
from ast import literal_eval
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.types import Chunk, Document, IntArray, SentenceTable
from precise_rag.vectors import slice_places


@dataclass(frozen=True, slots=True)
class Groups:
    """Consecutive rows in groups; group g has rows offsets[g] to offsets[g + 1].

    offsets: (n_groups + 1,) first row of each group, and the number of rows.
    of_row: (n,) group of each row.
    """

    offsets: IntArray
    of_row: IntArray

    @classmethod
    def by_change(cls, *keys: IntArray) -> Self:
        """Begin a new group wherever one of the (n,) or (n, k) keys changes."""
        changes = np.zeros(len(keys[0]), dtype=bool)
        changes[:1] = True
        for key in keys:
            different = key[1:] != key[:-1]
            changes[1:] |= different.any(axis=1) if different.ndim == 2 else different
        return cls(np.append(np.flatnonzero(changes), len(changes)), np.cumsum(changes) - 1)

    @property
    def starts(self) -> IntArray:
        """(n_groups,) first row of each group."""
        return self.offsets[:-1]

    @property
    def ends(self) -> IntArray:
        """(n_groups,) the row behind the last of each group."""
        return self.offsets[1:]

    @property
    def sizes(self) -> IntArray:
        """(n_groups,) number of rows in each group."""
        return np.diff(self.offsets)

    def members(self, groups: IntArray) -> tuple[IntArray, IntArray]:
        """Return the rows of some groups, one group after another, and where each group begins among them."""
        sizes = self.ends[groups] - self.starts[groups]
        return slice_places(self.starts[groups], sizes), np.cumsum(sizes) - sizes

    def spans(self, spans: IntArray) -> IntArray:
        """(n_groups, 2) from the first row's start to the last row's end; spans: (n, 2) of the rows."""
        return np.stack([spans[self.starts, 0], spans[self.ends - 1, 1]], axis=1)

    def sums(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """(n_groups, …) sum of each group's rows."""
        return np.add.reduceat(values, self.starts, axis=0)


class DocumentSegmenter(Protocol):
    """Cuts a document where its topic changes, like `Segmenter` and `GreedySegmenter`."""

    @property
    def name(self) -> str:
        """Name that a saved index records."""

    def segment(self, text: Document, table: SentenceTable | None = None) -> list[Chunk]:
        """Return chunks of whole sentences that together make up the text."""


Passages = str | int | DocumentSegmenter
"""How the sentences of a document are grouped into passages or chunks:

- "sentences": each alone.
- "paragraphs": by paragraph; one of more than 512 tokens, such as a transcript without blank lines, in parts.
- "200 tokens", or another number: whole paragraphs up to that length; a longer one is cut between sentences.
- a number: that many sentences each.
- "segments": by topic, with the packaged segmenter, 100 to 200 tokens each.
- another string: by topic, with the trained segmenter of that name or path.
- a segmenter object.
"""
_MOST_SENTENCES = 10**9
_LONGEST_PARAGRAPH = 512
_TOKENS = re.compile(r"([1-9][0-9]{0,8}) tokens")


def check_passages(name: str, passages: Passages) -> None:
    """Raise InputError if a setting is not one of the values of `Passages`; name: of the setting."""
    named = isinstance(passages, str) and passages
    counted = isinstance(passages, int) and 1 <= passages <= _MOST_SENTENCES
    if not (named or counted or hasattr(passages, "segment")):
        raise InputError(
            f"{name} must be 'sentences', 'paragraphs', '200 tokens', 'segments', a number of sentences "
            f"(at least 1) or a segmenter, got {shown(passages)}"
        )


def passage_ids(document: Document, table: SentenceTable, passages: Passages) -> IntArray:
    """(n,) passage of each sentence of one document, ascending from 0."""
    if passages == "paragraphs":
        before = np.cumsum(table.n_tokens) - table.n_tokens
        within = before - before[Groups.by_change(table.paragraphs).starts][table.paragraphs]
        return Groups.by_change(table.paragraphs, within // _LONGEST_PARAGRAPH).of_row
    if passages == "sentences" or not len(table):
        return np.arange(len(table), dtype=np.int64)
    if isinstance(passages, int):
        return np.arange(len(table), dtype=np.int64) // passages
    if isinstance(passages, str) and (limit := _TOKENS.fullmatch(passages)):
        return _packed(table, int(limit[1]))
    segmenter = _pretrained(passages) if isinstance(passages, str) else passages
    starts = np.array([chunk.start for chunk in segmenter.segment(document, table)], dtype=np.int64)
    return np.searchsorted(starts, table.spans[:, 0], side="right") - 1


def _packed(table: SentenceTable, max_tokens: int) -> IntArray:
    """(n,) passages of at most `max_tokens` tokens, except for single sentences that are longer.

    A paragraph longer than `max_tokens` begins a new passage and is cut between sentences.
    """
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
    """The segmenter with the name of one that was made by `Segmenter.from_pretrained`, or "segments"."""
    from precise_rag.segmentation import Segmenter

    if name == "segments":
        return Segmenter.from_pretrained("small", max_tokens=200, min_tokens=100)
    name, _, options = name.removesuffix(")").partition("(")
    pairs = (one.split("=") for one in options.split(", ") if one)
    return Segmenter.from_pretrained(name, **{key: literal_eval(value) for key, value in pairs})
