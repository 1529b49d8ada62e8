"""Vectors with near neighbours, and documents of two kinds, for the tests of dense search."""

import numpy as np

from precise_rag.types import Document

OLD = [Document(f"old{i}", f"The old cat number {i} sleeps. It purrs.") for i in range(20)]
NEW = [Document(f"new{i}", f"A new dog number {i} barks. It runs.") for i in range(30)]


def clustered(n: int, dimension: int = 32, seed: int = 0) -> np.ndarray:
    """Unit vectors around 50 centres: near neighbours exist, as they do in text."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(50, dimension))
    rows = centres[random.integers(0, 50, n)] + 0.7 * random.normal(size=(n, dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
