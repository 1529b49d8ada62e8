"""What a gap between two sentences looks like, as arrays. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from precise_rag.types import FloatArray
from precise_rag.vectors import unit_rows


def shifted(rows: FloatArray, places: int) -> FloatArray:
    """Rows moved down by `places` (up if negative), zeros moving in."""
    moved = np.zeros_like(rows)
    if places > 0:
        moved[places:] = rows[:-places]
    elif places < 0:
        moved[:places] = rows[-places:]
    else:
        moved[:] = rows
    return moved


def pair_features(left: FloatArray, right: FloatArray, features: Sequence[str]) -> FloatArray:
    """(n, k * d) the chosen features of n pairs of vectors, side by side.

    features: of "x1", "x2", "x1-x2", "x1*x2". Source: SAGE, section IV-B (feature augmentation).
    """
    columns = {"x1": left, "x2": right, "x1-x2": left - right, "x1*x2": left * right}
    return np.concatenate([columns[name] for name in features], axis=1)


def cohesion(rows: FloatArray, windows: Sequence[int]) -> FloatArray:
    """(n, len(windows)) the cosine of the sums of `window` rows up to i and from i + 1 on.

    windows: ascending powers of two.
    """
    n = len(rows)
    columns, before, width = [], np.pad(rows, ((0, max(windows)), (0, 0))), 1
    for window in windows:
        while width < window:
            before, width = before + shifted(before, width), 2 * width
        unit = unit_rows(before)
        columns.append(np.einsum("ij,ij->i", unit[:n], shifted(unit, -width)[:n]))
    return np.stack(columns, axis=1).astype(np.float32)


def convolve(rows: FloatArray, kernel: FloatArray) -> FloatArray:
    """(n, out) a convolution over n rows, with zeros beyond both ends. kernel: (out, in, width)."""
    width = kernel.shape[2]
    total = np.zeros((len(rows), kernel.shape[0]), dtype=np.float32)
    for place in range(width):
        total += shifted(rows, width // 2 - place) @ kernel[:, :, place].T
    return total
