"""The networks of the boundary models on a GPU, in torch; on a CPU, numpy evaluates the same weights.

They compute in float32, so that their logits differ from those on the CPU by rounding alone.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag.encoders.devices import best_device
from precise_rag.segmentation.features import REACH
from precise_rag.types import FloatArray, IntArray

BLOCK = 32_768
"""Sentences of a block on a device: many, because each block is a few dozen calls of the device."""


def network_device(device: str | None) -> str | None:
    """Return the device of torch that a boundary network runs on; None for numpy, on the CPU.

    device: "cpu", "cuda", "cuda:1", …; default: a GPU if torch can use one.
    """
    place = best_device(device)
    return None if place == "cpu" else place


class OnDevice:
    """The network of a boundary model on a device.

    config, tensors: of a `SmallModel` or `SageModel`. device: of torch, such as "cuda:1".
    """

    def __init__(self, config: Mapping[str, Any], tensors: Mapping[str, FloatArray], device: str) -> None:
        self._torch = require("torch", extra="torch")
        from precise_rag.segmentation.networks import sage_network, small_network

        make = small_network if config["family"] == "small" else sage_network
        self._device = self._torch.device(device)
        self._network: Any = make(config, tensors).to(self._device).eval()

    def logits(self, n: int, *inputs: FloatArray | IntArray) -> FloatArray:
        """Return the (n, 2) logits of n sentences that follow each other. inputs: what the network reads.

        Empty places follow the last sentence, so that the windows after it end there.
        """
        with self._torch.inference_mode():
            tensors = [
                self._torch.from_numpy(np.ascontiguousarray(rows)).to(self._device)
                for rows in (*inputs, np.arange(n))
            ]
            logits: FloatArray = self._network(*tensors, n + REACH)[:n].float().cpu().numpy()
        return logits
