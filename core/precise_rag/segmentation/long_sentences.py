"""Cutting of sentences, and of chunks measured as a whole, that are longer than the limit of a chunk."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from precise_rag.tokens import Counts
from precise_rag.types import BoolArray, FloatArray, IntArray
from precise_rag.vectors import offsets_of

_BEST_GAPS = 8
"""Times that a chunk is cut at its best gap; after that it is halved, so that the work stays bounded."""


def cut_long(
    text: str, spans: IntArray, counts: IntArray, limit: int, count_tokens: Counts
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut the spans that are longer than `limit` into pieces: halves, between lines or words if possible.

    spans: (n, 2) of `text`. counts: (n,) their lengths by `count_tokens`. limit: of each piece; a
    single character may exceed it.
    Returns the (m, 2) spans and (m,) lengths of the pieces, and the (m,) rows that they come from.
    A piece is blank only if white space alone exceeds the limit.
    """
    pieces = [
        (*piece, owner)
        for owner, ((start, end), count) in enumerate(zip(spans.tolist(), counts.tolist(), strict=True))
        for piece in _pieces(text, start, end, count, limit, count_tokens)
    ]
    table = np.array(pieces, dtype=np.int64).reshape(-1, 4)
    return table[:, :2], table[:, 2], table[:, 3]


def inside_words(text: str, spans: IntArray) -> BoolArray:
    """Return (n - 1,) whether two spans meet without a space or line end between them.

    Only there can the word pieces of a text differ from those of its parts. Tokenizers remove other
    characters that Python takes for white space.
    """
    beside = (text[end - 1 : end + 1] for end in spans[:-1, 1].tolist())
    return np.array([not any(c in " \t\r\n" for c in both) for both in beside], dtype=np.bool_)


def cut_recounted(
    text: str,
    spans: IntArray,
    counts: IntArray,
    gains: FloatArray,
    cuts: IntArray,
    unsure: BoolArray,
    limit: int,
    count_tokens: Counts,
) -> tuple[IntArray, IntArray]:
    """Add cuts until each chunk, measured as a whole, keeps the limit or is a single span.

    spans, counts: (n, 2) and (n,) of `text`. gains: (n - 1,) worth of a cut after each span.
    cuts: the chosen gaps, ascending. unsure: (n - 1,) gaps at which a chunk's length can differ from the
    sum of its spans'; only chunks that hold one are measured.
    Returns all cuts, ascending, and the length of each chunk.
    """
    n_unsure = offsets_of(unsure)
    sums = offsets_of(counts)
    lengths: dict[int, int] = {}
    waiting = list(pairwise([0, *(cuts + 1).tolist(), len(spans)]))
    n_rounds = 0
    while waiting:
        chunks = [(i, j) for i, j in waiting if n_unsure[j - 1] > n_unsure[i]]
        lengths |= {i: int(sums[j] - sums[i]) for i, j in waiting}
        measured = count_tokens([text[spans[i, 0] : spans[j - 1, 1]] for i, j in chunks]) if chunks else ()
        waiting = []
        for (i, j), length in zip(chunks, measured, strict=True):
            lengths[i] = int(length)
            if length > limit:
                best = i + 1 + int(np.argmax(gains[i : j - 1]))
                middle = best if n_rounds < _BEST_GAPS else (i + j) // 2
                waiting += [(i, middle), (middle, j)]
        n_rounds += 1
    starts = sorted(lengths)
    return np.array(starts[1:], dtype=np.int64) - 1, np.array([lengths[start] for start in starts])


def _pieces(
    text: str, start: int, end: int, count: int, limit: int, count_tokens: Counts
) -> Iterator[tuple[int, int, int]]:
    words = text[start:end].strip()
    if count <= limit or end - start < 2 or (len(words) == 1 and count_tokens([words])[0] == count):
        yield start, end, count
        return
    middle = _cut_place(text, start, end, limit, count_tokens)
    left, right = map(int, count_tokens([text[start:middle], text[middle:end]]))
    yield from _pieces(text, start, middle, left, limit, count_tokens)
    yield from _pieces(text, middle, end, right, limit, count_tokens)


def _cut_place(text: str, start: int, end: int, limit: int, count_tokens: Counts) -> int:
    """Find where to cut: after the words if they fit, else near the middle, at a line or else a word."""
    words = text[start:end].strip()
    if not words:
        return (start + end) // 2
    first = text.index(words, start)
    last = first + len(words)
    if len(words) < end - start and (len(words) < 2 or count_tokens([words])[0] <= limit):
        return last if last < end else first
    middle = (first + last) // 2
    lines = text.rfind("\n", first + 1, middle) + 1, text.find("\n", middle, last - 1) + 1
    inner = [place for place in lines if place and not text[place].isspace()]
    if inner:
        return min(inner, key=lambda place: abs(place - middle))
    for step in range(last - middle):
        for place in (middle - step, middle + step):
            if first < place < last and text[place - 1].isspace() and not text[place].isspace():
                return place
    return middle
