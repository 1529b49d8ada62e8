"""Vectors with near neighbours, for the tests of dense search."""

import numpy as np


def clustered(n: int, dimension: int = 32, seed: int = 0) -> np.ndarray:
    """Unit vectors around 50 centres: near neighbours exist, as they do in text."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(50, dimension))
    rows = centres[random.integers(0, 50, n)] + 0.7 * random.normal(size=(n, dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
