"""The packaged reranker's network, evaluated with numpy alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.types import FloatArray
from precise_rag.vectors import dots, linear


class FeatureNetwork:
    """Logits from feature rows: a linear model plus a network with two hidden layers.

    Each feature enters twice: standardised and clipped (0 if unknown), and as a flag that is 1 if
    it is unknown.

    tensors: "mean" and "deviation" (f,); "linear" (2f,) and "bias" (1,); "weight1" (h, 2f),
    "bias1" (h,), "weight2" (h, h), "bias2" (h,), "weight3" (h,), for f features and h hidden units.
    """

    CLIP = 4.0
    """Standard deviations at which a feature is clipped."""

    def __init__(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        self._tensors = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return (n,) logits for (n, f) feature rows."""
        t = self._tensors
        x = self.inputs(rows, t["mean"], t["deviation"])
        hidden = _silu(linear(x, t["weight1"]) + t["bias1"])
        hidden = _silu(linear(hidden, t["weight2"]) + t["bias2"])
        logits: FloatArray = dots(x, t["linear"]) + dots(hidden, t["weight3"]) + t["bias"]
        return logits

    @classmethod
    def inputs(cls, rows: FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """Return the (…, 2f) inputs of the network for (…, f) features, NaN where unknown."""
        unknown = np.isnan(rows)
        known = np.where(unknown, 0.0, np.clip((rows - mean) / deviation, -cls.CLIP, cls.CLIP))
        return np.concatenate([known, unknown], axis=-1).astype(np.float32)


def _silu(x: FloatArray) -> FloatArray:
    return np.asarray(x / (1.0 + np.exp(-x)), dtype=np.float32)
