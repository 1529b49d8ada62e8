"""Features of the gaps between sentences, and the blocks in which long documents are read. Pure numpy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precise_rag.models.checks import Rule, whole
from precise_rag.types import FloatArray
from precise_rag.vectors import unit_rows

_BLOCK = 4096
"""Sentences of a block, to bound memory in long documents."""

_REACH = 16
"""Sentences on each side of a gap that can change its logits: those of the widest window or convolution."""


SIZES = {
    "dimension": whole(1, 65_536),
    "hidden": whole(1, 65_536),
    "kernel": whole(1, 15),
    "windows": Rule(
        "a list of powers of two from 1 to 16, ascending",
        lambda value: (
            isinstance(value, list)
            and value != []
            and all(window in (1, 2, 4, 8, 16) for window in value)
            and value == sorted(set(value))
        ),
    ),
}
"""What the settings of a model that reads context must be."""


class Block(NamedTuple):
    """Consecutive sentences that a model reads at once.

    sentences: those to read, with the 16 before and after. gaps: the gaps of the document that get
    their logits from this block. rows: the same gaps within the block.
    """

    sentences: slice
    gaps: slice
    rows: slice


def blocks(n_sentences: int) -> Iterator[Block]:
    """Split a document into blocks; their logits are those of the whole document."""
    for start in range(0, n_sentences, _BLOCK):
        end = min(start + _BLOCK, n_sentences)
        first, last = max(start - _REACH, 0), min(end + _REACH + 1, n_sentences)
        stop = min(end, n_sentences - 1)
        yield Block(slice(first, last), slice(start, stop), slice(start - first, stop - first))


def shifted(rows: FloatArray, places: int) -> FloatArray:
    """Move rows down by `places` (up if negative) and fill with zeros."""
    moved = np.zeros_like(rows)
    if places > 0:
        moved[places:] = rows[:-places]
    elif places < 0:
        moved[:places] = rows[-places:]
    else:
        moved[:] = rows
    return moved


def pair_features(left: FloatArray, right: FloatArray, features: Sequence[str]) -> FloatArray:
    """Return (n, k * d): k features of n pairs of vectors, side by side.

    left, right: (n, d) vectors. features: k of "x1", "x2", "x1-x2", "x1*x2".
    Source: SAGE, section IV-B (feature augmentation).
    """
    columns = {"x1": left, "x2": right, "x1-x2": left - right, "x1*x2": left * right}
    return np.concatenate([columns[name] for name in features], axis=1)


def cohesion(rows: FloatArray, windows: Sequence[int]) -> FloatArray:
    """Return (n, len(windows)): cosine of the sums of `window` rows up to i and from i + 1 on.

    rows: (n, d) vectors. windows: window lengths, ascending powers of two.
    """
    n = len(rows)
    columns, before, width = [], np.pad(rows, ((0, max(windows)), (0, 0))), 1
    for window in windows:
        while width < window:
            before, width = before + shifted(before, width), 2 * width
        unit = unit_rows(before)
        columns.append(np.einsum("ij,ij->i", unit[:n], shifted(unit, -width)[:n]))
    return np.stack(columns, axis=1).astype(np.float32)


def with_context(rows: FloatArray, tensors: Mapping[str, FloatArray]) -> FloatArray:
    """Apply two residual convolutions over n rows.

    rows: (n, d). tensors: "convolution1.weight" (d, d, width), "convolution1.bias" (d,), and the same
    of convolution2.
    """
    for layer in ("convolution1", "convolution2"):
        convolved = _convolve(rows, tensors[f"{layer}.weight"]) + tensors[f"{layer}.bias"]
        rows = rows + np.maximum(convolved, 0)
    return rows


def context_shapes(config: Mapping[str, Any], width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors that turn sentences of `width` numbers into rows with context."""
    hidden, kernel = config["hidden"], config["kernel"]
    shapes: dict[str, tuple[int, ...]] = {"inner.weight": (hidden, width), "inner.bias": (hidden,)}
    for layer in ("convolution1", "convolution2"):
        shapes |= {f"{layer}.weight": (hidden, hidden, kernel), f"{layer}.bias": (hidden,)}
    return shapes


def gap_shapes(config: Mapping[str, Any], width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors that turn gaps of `width` numbers into logits."""
    hidden = config["hidden"]
    return {
        "gap.weight": (hidden, width),
        "gap.bias": (hidden,),
        "out.weight": (2, hidden),
        "out.bias": (2,),
    }


def _convolve(rows: FloatArray, kernel: FloatArray) -> FloatArray:
    """Convolve n rows, with zeros beyond both ends. kernel: (out, in, width)."""
    n, width = len(rows), kernel.shape[2]
    padded = np.pad(rows, ((width // 2, width - 1 - width // 2), (0, 0)))
    total = padded[:n] @ kernel[:, :, 0].T
    for place in range(1, width):
        total += padded[place : place + n] @ kernel[:, :, place].T
    return total
