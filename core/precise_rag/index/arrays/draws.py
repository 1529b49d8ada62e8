"""A number for each row, as if drawn at random, that only the document's id and the row's place in it decide.

Where scores are equal, or where some rows stand for all, the rows with the lowest numbers are taken. So what
is taken does not depend on the order in which documents were added.
"""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from precise_rag.types import IntArray

LARGEST = 2**63 - 1
LOTTERY = 2**31 - 1
"""Each row of a database has a draw below this number, so that a range of numbers is a random sample."""
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def seeds_of(ids: Iterable[str]) -> npt.NDArray[np.uint64]:
    """(n,) a number for each id of a document, for `draws`."""
    digests = (blake2b(i.encode("utf-8", "surrogatepass"), digest_size=8).digest() for i in ids)
    return np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.uint64)


def draws(seeds: npt.NDArray[np.uint64], places: npt.ArrayLike) -> IntArray:
    """(n,) int64 numbers of rows, from 0 to `LARGEST`.

    seeds: (n,) of the document of each row. places: (n,) number of each row in its document.
    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014), SplitMix64.
    """
    mixed = seeds + (np.asarray(places).astype(np.uint64) + np.uint64(1)) * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    drawn: IntArray = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)
    return drawn


def lottery(ids: Iterable[str], places: npt.ArrayLike) -> list[int]:
    """The draws of n rows as a database keeps them: from 0, below `LOTTERY`; ids: of the rows' documents."""
    drawn: list[int] = (draws(seeds_of(ids), places) % LOTTERY).tolist()
    return drawn
