"""The networks of the boundary models: in numpy on a CPU, and with the same weights in torch on a GPU.

Both compute in float32, so that their logits differ by rounding alone.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag._processes import Loaded, PerProcess
from precise_rag.encoders.devices import best_device
from precise_rag.segmentation.features import REACH, batches
from precise_rag.types import FloatArray, IntArray

BATCH = 512
"""Sentences of a batch in numpy, whose numbers stay in the processor's cache."""
DEVICE_BATCH = 32_768
"""Sentences of a batch on a device: many, because each batch is a few dozen calls of the device."""
Inputs = Sequence[FloatArray | IntArray]
"""What a network reads of some sentences."""


class NetworkModel(Loaded):
    """Base of boundary models that are a network.

    config, tensors: the model's sizes and weights. device: where it runs, see `best_device`.
    """

    def __init__(self, config: dict[str, Any], tensors: Mapping[str, FloatArray], device: str | None) -> None:
        self.config, self.tensors, self.device = config, tensors, device
        self.weights_sha256: str = config["weights_sha256"]
        self._on_device: PerProcess[Callable[..., FloatArray]] = PerProcess()

    @abstractmethod
    def _logits(self, *inputs: Any) -> FloatArray:
        """The network in numpy: the (n, 2) logits of n sentences that follow each other."""

    def _gap_logits(self, n: int, read: Callable[[slice], Inputs]) -> FloatArray:
        """The (n - 1, 2) logits of the gaps between n sentences, of which `read` returns the inputs."""
        logits = np.zeros((max(n - 1, 0), 2), dtype=np.float32)
        device = best_device(self.device) if n > 1 else "cpu"
        network = None
        if device != "cpu":
            network = self._on_device.get(lambda: on_device(self.config, self.tensors, device))
        for batch in batches(n, BATCH if network is None else DEVICE_BATCH):
            inputs, n_read = read(batch.sentences), batch.sentences.stop - batch.sentences.start
            of_batch = self._logits(*inputs) if network is None else network(n_read, *inputs)
            logits[batch.gaps] = of_batch[batch.rows]
        return logits


def on_device(
    config: Mapping[str, Any], tensors: Mapping[str, FloatArray], name: str
) -> Callable[..., FloatArray]:
    """Return the network of a boundary model on a device of torch, such as "cuda:1"; see `NetworkModel`.

    It takes the number n of sentences that follow each other, and what it reads of them, and returns their
    (n, 2) logits. Empty places follow the last sentence, so that the windows after it end there.
    """
    torch = require("torch", extra="torch")
    from precise_rag.segmentation.networks import sage_network, small_network

    make = small_network if config["family"] == "small" else sage_network
    device = torch.device(name)
    network: Any = make(config, tensors).to(device).eval()

    def logits(n: int, *inputs: FloatArray | IntArray) -> FloatArray:
        with torch.inference_mode():
            rows = (np.ascontiguousarray(one) for one in (*inputs, np.arange(n)))
            found = network(*(torch.from_numpy(one).to(device) for one in rows), n + REACH)
            given: FloatArray = found[:n].float().cpu().numpy()
        return given

    return logits
