"""The best rows of an array of scores, draws among equal ones, and the fusion of several scores.

A draw is a number for each row, as if drawn at random, that only the document's id and the row's place in it
decide. Where scores are equal, the rows with the lowest numbers are taken, so that what is taken does not
depend on the order in which documents were added.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from precise_rag.types import BoolArray, FloatArray, IntArray

LOTTERY = 2**31 - 1
"""Each row of a database has a draw below this number, so that a range of numbers is a random sample."""
Draws = Callable[[IntArray], IntArray]
"""Gives the draws of some ascending rows; see `draws`."""
_FEW = 3
"""Rows up to which a code of a query, such as E4266, is rare: they come first, whatever the other words."""
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def seeds_of(ids: Iterable[str]) -> npt.NDArray[np.uint64]:
    """(n,) a number for each id of a document, for `draws`."""
    digests = (blake2b(i.encode("utf-8", "surrogatepass"), digest_size=8).digest() for i in ids)
    return np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.uint64)


def draws(seeds: npt.NDArray[np.uint64], places: npt.ArrayLike) -> IntArray:
    """(n,) int64 numbers of rows, from 0, below 2**63.

    seeds: (n,) of the document of each row. places: (n,) number of each row in its document.
    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014), SplitMix64.
    """
    mixed = seeds + (np.asarray(places).astype(np.uint64) + np.uint64(1)) * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return np.asarray((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1), dtype=np.int64)


def least_of(scores: FloatArray, top_k: int) -> float:
    """The lowest of the `top_k` best scores; -inf if there are at most `top_k`."""
    place = len(scores) - top_k
    return float(np.partition(scores, place)[place]) if place > 0 else -np.inf


def fair_rows(scores: FloatArray, top_k: int, drawn: Draws) -> IntArray:
    """The rows of the `top_k` best scores, ascending; of equal ones, those with the lowest draws."""
    least = least_of(scores, top_k)
    equal, above = np.flatnonzero(scores == least), np.flatnonzero(scores > least)
    n_equal = top_k - len(above)
    if len(equal) > n_equal:
        equal = equal[np.argpartition(drawn(equal), n_equal - 1)[:n_equal]]
    return np.sort(np.append(above, equal))


def best_rows(scores: FloatArray, top_k: int, drawn: Draws) -> IntArray:
    """The rows of the `top_k` best scores, best first; of equal ones, that with the lowest draw is first."""
    rows = fair_rows(scores, top_k, drawn)
    return rows[np.lexsort((drawn(rows), -scores[rows]))]


def scaled(scores: FloatArray, low: float | None = None) -> FloatArray:
    """(n,) scores scaled linearly: `low`, or the lowest, becomes 0, the best 1; zeros if none is higher."""
    low, high = scores.min() if low is None else low, scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)


def pooled(parts: Sequence[FloatArray], pool: int, drawn: Draws) -> IntArray:
    """The rows that are among the `pool` best of one part, ascending.

    parts: (n,) scores of all rows.
    Differs from ChunkRAG: a row found by one part has its true score in the other parts, too.
    """
    return np.unique(np.concatenate([fair_rows(part, pool, drawn) for part in parts]))


def few_with(found: Iterable[BoolArray], n_rows: int) -> BoolArray:
    """(n_rows,) whether each row is among those that have something which at most three of them have.

    found: for each thing, such as a code of a query, the rows that have it.
    """
    has_few = np.zeros(n_rows, dtype=np.bool_)
    for rows in found:
        if np.count_nonzero(rows) <= _FEW:
            has_few |= rows
    return has_few
