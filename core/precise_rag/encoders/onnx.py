"""Encoders that ONNX Runtime runs on the CPU."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from precise_rag._extras import is_installed
from precise_rag._processes import PerProcess
from precise_rag.encoders.devices import runs_on_onnx
from precise_rag.encoders.hub import hub_folder
from precise_rag.encoders.local import PACKAGED, Done, LocalEncoder, Role, check_no_code, torch_weights
from precise_rag.encoders.onnx_file import BATCH_TOKENS, ONNX_FILES, OnnxFile
from precise_rag.encoders.reading import NotRunnable, Reading, reading_of
from precise_rag.errors import ModelError
from precise_rag.types import FloatArray, IntArray

T = TypeVar("T")


def opened(source: str, folder: Path | None, *, download: bool) -> Reading:
    """Return how a model reads texts, after it was fetched if it must be and `download` says so.

    source: its folder or name. folder: where it is, if that is known.
    Raises NotRunnable if it is not on this machine, and as `reading_of`.
    """
    folder = folder or hub_folder(source, ONNX_FILES, download=download)
    if folder is None:
        raise NotRunnable(source, "is not on this machine")
    check_no_code(folder)
    try:
        return reading_of(folder, source)
    except NotRunnable:
        raise
    except (ModelError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise NotRunnable(source, f"has files that cannot be read ({error})") from error


def on_onnx(kind: Callable[..., T], source: str | Path, device: str | None) -> T | None:
    """Return a model that ONNX Runtime runs, or None if it is left to torch.

    kind: makes it of its source, and with `download`, fetches what is not on this machine. Where torch is
        installed, it is left to torch to fetch it.
    device: as for `best_device`.
    Raises NotRunnable if torch is not installed, or the model is a folder without weights for it.
    """
    has_torch = is_installed("sentence_transformers")
    try:
        return kind(source, download=not has_torch) if runs_on_onnx(device) else None
    except NotRunnable as error:
        if (folder := Path(source)).is_dir() and not torch_weights(folder):
            raise
        if not has_torch:
            raise NotRunnable(f"{error};", "torch may run it: pip install 'precise-rag[torch]'") from error
        return None


class OnnxEncoder(LocalEncoder):
    """An encoder in the form of sentence-transformers on the CPU, without torch.

    name_or_path: a folder, or a name on the Hugging Face hub. It has onnx/model.onnx or model.onnx.
    download: fetch a model that is not on this machine; default: True.
    Raises NotRunnable if the model is not on this machine, or needs what only torch does.

    The vectors are those of `SentenceTransformerEncoder` up to the rounding of the file, and so is the name.
    The default encoder computes in int8; those of the package are loaded on first use.
    """

    def __init__(
        self, name_or_path: str | Path, *, device: str | None = "cpu", download: bool = True
    ) -> None:
        super().__init__(name_or_path, device=device)
        self._reading = opened(self.source, self._folder, download=download)
        self._is_packaged = self.source in PACKAGED
        self._network: PerProcess[OnnxFile] = PerProcess()
        if not self._is_packaged:
            _ = self.network  # loaded at once: whether a file can be run is seen then

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        width: int = self._reading.config.get("hidden_size", 0)
        return width if self._is_packaged else self.network.states(self.tokens(["width"])).shape[1]

    @cached_property
    def tokenizer(self) -> Any:
        """The model's `tokenizers.Tokenizer`, without truncation."""
        return self._reading.tokenizer()

    @property
    def _limit(self) -> int:
        return self._reading.limit

    def load_model(self) -> None:
        """Load the model now, not at the first text."""
        _ = self.tokenizer, self.network

    @property
    def network(self) -> OnnxFile:
        """The network, loaded at its first use."""
        return self._network.get(self._load)

    def _load(self) -> OnnxFile:
        network = OnnxFile(self._reading, for_callers=self._is_packaged)
        if network.output == "logits":
            raise NotRunnable(self.source, "gives logits, so it is no encoder")
        return network

    def _fill(self, rows: FloatArray, texts: Sequence[str], role: Role, done: Done) -> None:
        prompt, network = getattr(self._reading.prompts, role), self.network
        tokens = self.tokens([prompt + text for text in texts] if prompt else texts)
        for chosen, batch in tokens.cut(self._reading.limit).batches(BATCH_TOKENS * network.threads):
            rows[chosen] = pooled(network.states(batch), batch.lengths, self._reading.pooling)
            done(len(chosen))


def pooled(states: FloatArray, lengths: IntArray, pooling: str) -> FloatArray:
    """Return the (n, width) vectors of n texts, not scaled.

    states: (t, width) of their tokens, or already one for each text. lengths: (n,) tokens of each text, at
    least 1. pooling: see `Reading`.
    """
    if len(states) == len(lengths):
        return states
    last = np.cumsum(lengths) - 1
    first = last - lengths + 1
    if pooling in ("cls", "lasttoken"):
        return states[first if pooling == "cls" else last]
    vectors: FloatArray = (np.maximum if pooling == "max" else np.add).reduceat(states, first)
    if pooling == "mean":
        vectors /= lengths[:, None]
    return vectors
