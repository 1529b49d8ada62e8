"""Vectors of chunks from those of their sentences, so that nothing is encoded twice.

A chunk is weighed with the text around it as ParetoRAG (section 3.2) weighs a sentence with its passage:

    h = alpha * chunk + (1 - alpha) * surroundings

where both are token-weighted means of sentence vectors, normalised. Beyond the paper, which knows sentences
and encoded contexts only; decision 11 has what was measured.
"""

import numpy as np

from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import unit_rows

_REACH = 150
"""Tokens that count as surroundings on either side: about a paragraph."""

_SHORTEST = 1e-3
"""A sum of vectors this short is zero except for rounding."""


def chunk_vectors(
    vectors: FloatArray, n_tokens: IntArray, starts: IntArray, ends: IntArray, *, alpha: float = 1.0
) -> FloatArray:
    """(m, d) float32 rows of unit length, one per chunk of one document.

    vectors: (n, d) of the sentences; n_tokens: (n,). starts, ends: (m,) the first sentence of each
    chunk and the one behind its last. alpha: 1 is the chunk alone; a chunk without surroundings is
    alone in any case.
    """
    weights = np.maximum(n_tokens, 1)
    weighted = np.concatenate([vectors * weights[:, None], np.zeros_like(vectors[:1])]).astype(np.float32)
    own = _sums(weighted, starts, ends)
    if alpha == 1:
        return unit_rows(own, shortest=_SHORTEST)
    places = np.concatenate([[0], np.cumsum(weights)])
    first = np.searchsorted(places, places[starts] - _REACH)
    behind = np.searchsorted(places, places[ends] + _REACH, side="right") - 1
    around = unit_rows(_sums(weighted, first, behind) - own, shortest=_SHORTEST)
    own = unit_rows(own, shortest=_SHORTEST)
    mixed = np.where(around.any(axis=1, keepdims=True), alpha * own + (1 - alpha) * around, own)
    return unit_rows(mixed, shortest=_SHORTEST)


def _sums(rows: FloatArray, starts: IntArray, ends: IntArray) -> FloatArray:
    """(m, d) sums of rows[start:end], none of them empty; the last row is not part of any."""
    total: FloatArray = np.add.reduceat(rows, np.stack([starts, ends], axis=1).ravel())[::2]
    return total
