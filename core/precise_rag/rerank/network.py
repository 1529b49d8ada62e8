"""The packaged reranker's network: a few matrix products, evaluated with numpy alone."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.types import FloatArray


class FeatureNetwork:
    """A linear model of the features plus a small two-layer network of the same.

    Each feature enters twice: standardised and clipped, 0 where it is unknown, and as a mark that
    says so. tensors: "mean" and "deviation" (f,); "linear" (2f,) and "bias" (1,); "weight1" (h, 2f),
    "bias1" (h,), "weight2" (h, h), "bias2" (h,), "weight3" (h,).
    """

    CLIP = 4.0
    """Deviations beyond which a feature counts no further."""

    def __init__(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        self._tensors = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}

    def __call__(self, rows: FloatArray) -> FloatArray:
        """(n,) logits for (n, f) feature rows."""
        t = self._tensors
        x = self.inputs(rows, t["mean"], t["deviation"])
        hidden = _silu(x @ t["weight1"].T + t["bias1"])
        hidden = _silu(hidden @ t["weight2"].T + t["bias2"])
        logits: FloatArray = x @ t["linear"] + hidden @ t["weight3"] + t["bias"]
        return logits

    @classmethod
    def inputs(cls, rows: FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
        """(…, 2f) what the network sees of (…, f) features."""
        unknown = np.isnan(rows)
        known = np.where(unknown, 0.0, np.clip((rows - mean) / deviation, -cls.CLIP, cls.CLIP))
        return np.concatenate([known, unknown], axis=-1).astype(np.float32)


def _silu(x: FloatArray) -> FloatArray:
    return np.asarray(x / (1.0 + np.exp(-x)), dtype=np.float32)
