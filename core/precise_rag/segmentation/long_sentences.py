"""Cutting of sentences that are longer than the limit of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from precise_rag.types import IntArray

CountTokens = Callable[[Sequence[str]], Sequence[int] | IntArray]
"""Function from texts to their lengths, in tokens or another measure."""


def cut_long(
    text: str, spans: IntArray, counts: IntArray, limit: int, count_tokens: CountTokens
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut the spans that are longer than `limit` into pieces: halves, between words if possible.

    spans: (n, 2) of `text`. counts: (n,) their lengths by `count_tokens`. limit: of each piece; a
    single character may exceed it.
    Returns the (m, 2) spans and (m,) lengths of the pieces, and the (m,) rows that they come from.
    A piece is blank only if white space alone exceeds the limit.
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
    """Find where to cut: at the start of the word nearest the middle, or after the words if they fit."""
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
