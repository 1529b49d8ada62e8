"""Sentences longer than a chunk may be, in pieces that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from precise_rag.types import IntArray

CountTokens = Callable[[Sequence[str]], Sequence[int] | IntArray]
"""Texts to their lengths in some measure."""


def cut_long(
    text: str, spans: IntArray, counts: IntArray, limit: int, count_tokens: CountTokens
) -> tuple[IntArray, IntArray, IntArray]:
    """The spans again, longer ones in pieces of at most `limit`, halved between words if possible.

    A piece is blank only where white space itself does not fit.
    spans: (n, 2). counts: (n,) by `count_tokens`. Returns spans and counts of the m pieces, and
    (m,) the row that each came from. A single character is never cut, whatever its count.
    """
    rows: list[tuple[int, int]] = []
    lengths: list[int] = []
    owners: list[int] = []
    for owner, ((start, end), count) in enumerate(zip(spans.tolist(), counts.tolist(), strict=True)):
        for first, last, length in _pieces(text, start, end, count, limit, count_tokens):
            rows.append((first, last))
            lengths.append(length)
            owners.append(owner)
    return np.array(rows, dtype=np.int64), np.array(lengths, dtype=np.int64), np.array(owners, dtype=np.int64)


def _pieces(
    text: str, start: int, end: int, count: int, limit: int, count_tokens: CountTokens
) -> Iterator[tuple[int, int, int]]:
    if count <= limit or end - start < 2:
        yield start, end, count
        return
    middle = _cut_place(text, start, end, limit, count_tokens)
    left, right = map(int, count_tokens([text[start:middle], text[middle:end]]))
    yield from _pieces(text, start, middle, left, limit, count_tokens)
    yield from _pieces(text, middle, end, right, limit, count_tokens)


def _cut_place(text: str, start: int, end: int, limit: int, count_tokens: CountTokens) -> int:
    """Where to cut: at the word that begins nearest the middle, or where the words end if they fit."""
    words = text[start:end].strip()
    first = text.index(words, start)
    last = first + len(words)
    if words and len(words) < end - start and (len(words) < 2 or count_tokens([words])[0] <= limit):
        return last if last < end else first
    middle = (first + last) // 2 if words else (start + end) // 2
    for step in range(last - middle):
        for place in (middle - step, middle + step):
            if first < place < last and text[place - 1].isspace() and not text[place].isspace():
                return place
    return middle
