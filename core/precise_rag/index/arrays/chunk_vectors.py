"""Vectors of chunks, computed from the vectors of their sentences.

    h = alpha * chunk + (1 - alpha) * surroundings

Both terms are token-weighted means of sentence vectors, scaled to unit length.
Source: ParetoRAG, section 3.2. Differs: the paper weights sentences, not chunks, and encodes contexts;
see docs/design.md.
"""

import numpy as np

from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import unit_rows

_REACH = 150
"""Tokens on either side of a chunk that are its surroundings: about a paragraph."""

_SHORTEST = 1e-3
"""A sum of vectors this short is zero except for rounding."""


def chunk_vectors(
    vectors: FloatArray, n_tokens: IntArray, starts: IntArray, ends: IntArray, *, alpha: float = 1.0
) -> FloatArray:
    """(m, d) float32 vectors of unit length, one per chunk of one document.

    vectors: (n, d) sentence vectors.
    n_tokens: (n,) tokens of each sentence.
    starts: (m,) first sentence of each chunk.
    ends: (m,) end of each chunk: its last sentence + 1.
    alpha: weight of the chunk (0 to 1); 1 ignores the surroundings. A chunk without any is not weighted.
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
    """(m, d) sums of rows[start:end]; no slice is empty, and none reaches the last row."""
    total: FloatArray = np.add.reduceat(rows, np.stack([starts, ends], axis=1).ravel())[::2]
    return total
