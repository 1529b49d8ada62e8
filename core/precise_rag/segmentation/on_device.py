"""The networks of the boundary models on a GPU, in torch; on a CPU, numpy evaluates the same weights.

They compute in float32, so that their logits differ from those on the CPU by rounding alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag.encoders.devices import has_gpu
from precise_rag.errors import InputError
from precise_rag.segmentation.features import REACH
from precise_rag.types import FloatArray, IntArray

BLOCK = 32_768
"""Sentences of a block on a device: many, because each block is a few dozen calls of the device."""


def network_device(device: str | None) -> str | None:
    """Return the device of torch that a boundary network runs on; None for numpy, on the CPU.

    device: "cpu", "cuda", "cuda:1", …; default: a GPU if torch can use one.
    """
    if device is not None and not isinstance(device, str):
        raise InputError(f"device must be a text such as 'cpu' or 'cuda', got {type(device).__name__}")
    if device is None:
        return "cuda" if has_gpu() else None
    return None if device == "cpu" else device


class SmallOnDevice:
    """The network of the small model on a device: its features, its context and its head.

    config, tensors: of a `SmallModel`. device: of torch, such as "cuda:1".
    """

    def __init__(self, config: Mapping[str, Any], tensors: Mapping[str, FloatArray], device: str) -> None:
        from precise_rag.segmentation.networks import small_network

        self._network, self._torch, self._device = _placed(small_network(config, tensors), device)

    def logits(self, ids: IntArray, offsets: IntArray) -> FloatArray:
        """Return the (n, 2) logits of n sentences that follow each other.

        ids: the word pieces of all. offsets: (n + 1,) where each sentence begins.
        """
        places = np.arange(len(offsets) - 1)
        return _run(self._torch, self._network, self._device, (ids, offsets, places))


class SageOnDevice:
    """SAGE's head on a device.

    config, tensors: of a `SageModel`. device: of torch.
    """

    def __init__(self, config: Mapping[str, Any], tensors: Mapping[str, FloatArray], device: str) -> None:
        from precise_rag.segmentation.networks import sage_network

        self._network, self._torch, self._device = _placed(sage_network(config, tensors), device)

    def logits(self, vectors: FloatArray) -> FloatArray:
        """Return the (n, 2) logits of n sentences that follow each other. vectors: (n, d) of theirs."""
        places = np.arange(len(vectors))
        return _run(self._torch, self._network, self._device, (vectors, places))


def _placed(network: Any, device: str) -> tuple[Any, Any, Any]:
    torch = require("torch", extra="torch")
    place = torch.device(device)
    return network.to(place).eval(), torch, place


def _run(torch: Any, network: Any, device: Any, given: tuple[Any, ...]) -> FloatArray:
    """Return the network's output for arrays, of which the last is the place of each sentence.

    Empty places follow the last sentence, so that the windows after it end there.
    """
    n = len(given[-1])
    with torch.inference_mode():
        tensors = [torch.from_numpy(np.ascontiguousarray(rows)).to(device) for rows in given]
        logits: FloatArray = network(*tensors, n + REACH)[:n].float().cpu().numpy()
    return logits
