"""Features of the gaps between sentences, and the batches in which long documents are read. Pure numpy."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precise_rag.types import FloatArray
from precise_rag.vectors import linear, unit_rows

REACH = 16
"""Sentences on each side of a gap that can change its logits: the widest window or convolution."""
CURVE_WIDTH = 9
"""Gaps that a convolution of `curve` covers."""
SIZES = {"dimension": int, "hidden": int, "kernel": int, "windows": list}
"""What the settings of a model that reads context must be."""


class Batch(NamedTuple):
    """Consecutive sentences that a model reads at once.

    sentences: those to read, with the 16 before and after. gaps: the gaps of the document that get
    their logits from this batch. rows: the same gaps within the batch.
    """

    sentences: slice
    gaps: slice
    rows: slice


def batches(n_sentences: int, size: int) -> Iterator[Batch]:
    """Split a document into batches of `size` sentences whose logits are as in the whole document."""
    for start in range(0, n_sentences, size):
        end = min(start + size, n_sentences)
        first, last = max(start - REACH, 0), min(end + REACH + 1, n_sentences)
        stop = min(end, n_sentences - 1)
        yield Batch(slice(first, last), slice(start, stop), slice(start - first, stop - first))


def shifted(rows: FloatArray, places: int) -> FloatArray:
    """Move rows down by `places` (up if negative) and fill with zeros."""
    padded = np.pad(rows, ((max(places, 0), max(-places, 0)), (0, 0)))
    return padded[: len(rows)] if places >= 0 else padded[-places:]


def pair_features(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return (n, 4 d): features of n pairs of vectors, which are both, their difference and their product.

    left, right: (n, d) vectors.
    Source: SAGE, section IV-B (feature augmentation).
    """
    return np.concatenate([left, right, left - right, left * right], axis=1)


def cohesion(rows: FloatArray, windows: Sequence[int]) -> FloatArray:
    """Return (n, len(windows)): cosine of the sums of `window` rows up to i and from i + 1 on.

    rows: (n, d) vectors. windows: window lengths, ascending powers of two.
    """
    n, columns = len(rows), []
    for window, before in _window_sums(rows, windows):
        unit = unit_rows(before)
        columns.append(np.einsum("ij,ij->i", unit[:n], shifted(unit, -window)[:n]))
    return np.stack(columns, axis=1).astype(np.float32)


def closeness(rows: FloatArray, windows: Sequence[int]) -> FloatArray:
    """Return (n, 2 k): lengths of the mean of `window` rows up to i and from i + 1 on, of k windows over 1.

    rows: (n, d) vectors of unit length; the mean is long where they are alike. windows: as for `cohesion`.
    """
    n, columns = len(rows), [np.zeros((len(rows), 0), dtype=np.float32)]
    for window, before in _window_sums(rows, windows):
        if window > 1:
            last = np.arange(len(before))
            count = np.minimum(last, n - 1) - np.maximum(last - window, -1)
            length = (np.linalg.norm(before, axis=1) / np.maximum(count, 1))[:, None]
            columns += [length[:n], shifted(length, -window)[:n]]
    return np.concatenate(columns, axis=1, dtype=np.float32)


def _window_sums(rows: FloatArray, windows: Sequence[int]) -> Iterator[tuple[int, FloatArray]]:
    """Yield each window and the (n + max(windows), d) sums of as many rows up to each place."""
    before, width = np.pad(rows, ((0, max(windows)), (0, 0))), 1
    for window in windows:
        while width < window:
            before, width = before + shifted(before, width), 2 * width
        yield window, before


def with_context(rows: FloatArray, tensors: Mapping[str, FloatArray]) -> FloatArray:
    """Return (n, h): n rows in a hidden layer and two residual convolutions; see `context_shapes`."""
    rows = np.maximum(linear(rows, tensors["inner.weight"]) + tensors["inner.bias"], 0)
    for layer in ("convolution1", "convolution2"):
        rows = rows + _convolved(rows, tensors, layer)
    return rows


def curve(likeness: FloatArray, tensors: Mapping[str, FloatArray]) -> FloatArray:
    """Return (n, c): two convolutions over how alike the windows around each of n gaps are.

    likeness: (n, k) cohesion and closeness. A gap is told by how it differs from the gaps near it, as in
    TextTiling's depth scores (Hearst 1997). tensors: those of `curve_shapes`.
    """
    first = _convolved(likeness, tensors, "curve1")
    return first + _convolved(first, tensors, "curve2")


def curve_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors of `curve`."""
    channels, columns = config["curve"], 3 * len(config["windows"]) - 2 * (1 in config["windows"])
    first = _layer_shapes("curve1", channels, columns, CURVE_WIDTH)
    return first | _layer_shapes("curve2", channels, channels, CURVE_WIDTH)


def context_shapes(config: Mapping[str, Any], width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors that turn sentences of `width` numbers into rows with context."""
    hidden, kernel = config["hidden"], config["kernel"]
    shapes = _layer_shapes("inner", hidden, width)
    for layer in ("convolution1", "convolution2"):
        shapes |= _layer_shapes(layer, hidden, hidden, kernel)
    return shapes


def gap_shapes(config: Mapping[str, Any], width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors that turn gaps of `width` numbers into logits."""
    return _layer_shapes("gap", config["hidden"], width) | _layer_shapes("out", 2, config["hidden"])


def _layer_shapes(name: str, *weight: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": weight, f"{name}.bias": weight[:1]}


def gap_logits(gaps: FloatArray, tensors: Mapping[str, FloatArray]) -> FloatArray:
    """Return the (n, 2) logits of n gaps. tensors: those of `gap_shapes`."""
    hidden = np.maximum(linear(gaps, tensors["gap.weight"]) + tensors["gap.bias"], 0)
    logits: FloatArray = linear(hidden, tensors["out.weight"]) + tensors["out.bias"]
    return logits


def _convolved(rows: FloatArray, tensors: Mapping[str, FloatArray], layer: str) -> FloatArray:
    """Convolve n rows, with zeros beyond both ends, up to the layer's ReLU. Its weight: (out, in, width)."""
    kernel = tensors[f"{layer}.weight"]
    n, width = len(rows), kernel.shape[2]
    padded = np.pad(rows, ((width // 2, width - 1 - width // 2), (0, 0)))
    total = linear(padded[:n], kernel[:, :, 0])
    for place in range(1, width):
        total += linear(padded[place : place + n], kernel[:, :, place])
    convolved: FloatArray = np.maximum(total + tensors[f"{layer}.bias"], 0)
    return convolved
