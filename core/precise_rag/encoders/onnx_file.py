"""Networks in ONNX files, which ONNX Runtime runs on the CPU."""

import os
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from threading import BoundedSemaphore, get_ident
from types import MappingProxyType
from typing import Any

import numpy as np

from precise_rag._processes import PerProcess
from precise_rag.checkpoints import packaged_model
from precise_rag.encoders.reading import NotRunnable, Reading
from precise_rag.encoders.token_ids import TokenIds
from precise_rag.errors import ModelError
from precise_rag.types import FloatArray

ONNX_FILES = "onnx/model.onnx", "model.onnx"
BATCH_TOKENS = 1_024
"""Tokens of a batch for each thread: few enough that the states stay in the processor's cache."""
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class OnnxFile:
    """A network in an ONNX file in the folder of a model; threads can share it.

    reading: how the model reads texts. weights: those that are in no file in the folder, by name; the network
    reads them from the arrays. for_callers: several threads will run it at a time. Calls that begin while
    others run then use a second copy with one thread: several threads for each of several calls do the same
    work in more time. Its output is "sentence_embedding" or else its first one.
    Raises NotRunnable if there is no such file, or if it cannot be loaded or asks for other inputs than
    tokens, their types and which of them are not padding.
    """

    def __init__(
        self,
        reading: Reading,
        weights: Mapping[str, np.ndarray[Any, Any]] = MappingProxyType({}),
        *,
        for_callers: bool = False,
    ) -> None:
        folder = reading.folder
        file = next((folder / name for name in ONNX_FILES if (folder / name).is_file()), None)
        if file is None:
            raise NotRunnable(folder, "has no onnx/model.onnx, which `optimum-cli export onnx` writes")
        self.threads, self._padding = usable_threads(), reading.config.get("pad_token_id") or 0
        load = partial(_session, file, weights)  # it keeps the arrays
        self._session = load(self.threads)
        self._load_alone = partial(load, 1) if for_callers and self.threads > 1 else None
        self._alone: PerProcess[Any] = PerProcess()
        self._types = {
            one.name: np.int32 if one.type == "tensor(int32)" else np.int64
            for one in self._session.get_inputs()
        }
        if unknown := sorted(self._types.keys() - _INPUTS):
            raise NotRunnable(file, f"asks for {', '.join(unknown[:3])}, which is not known here")
        outputs = [one.name for one in self._session.get_outputs()]
        self.output = "sentence_embedding" if "sentence_embedding" in outputs else outputs[0]

    def states(self, tokens: TokenIds) -> FloatArray:
        """Return the (t, width) states of all tokens, or (n, width) rows if there is one for each text.

        Raises ModelError if the network cannot be run.
        """
        ids, kinds, mask = tokens.padded(self._padding)
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": kinds}
        given = {name: known[name].astype(kind) for name, kind in self._types.items()}
        found: FloatArray = self._run(given).astype(np.float32, copy=False)
        return found[mask] if found.ndim == 3 else found

    def _run(self, inputs: Mapping[str, Any]) -> Any:
        running, caller = _running.get(set), get_ident()
        with _slots.get(lambda: BoundedSemaphore(usable_threads())):
            session = self._alone.get(self._load_alone) if running and self._load_alone else self._session
            running.add(caller)
            try:
                return session.run([self.output], inputs)[0]
            except Exception as error:  # the library has no class for all its errors
                raise ModelError(f"the network cannot be run: {error}") from error
            finally:
                running.discard(caller)


_running: PerProcess[set[int]] = PerProcess()
_slots: PerProcess[BoundedSemaphore] = PerProcess()
"""As many as processors: more calls at a time would need more memory and end no sooner."""


def _runtime() -> Any:
    """ONNX Runtime, imported at its first use, which takes time, so that it sends nothing to its makers."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # as of version 1.32 it tells them what it runs
    import onnxruntime

    return onnxruntime


def _session(file: Path, weights: Mapping[str, np.ndarray[Any, Any]], threads: int) -> Any:
    """Load a file into ONNX Runtime. Idle threads do not spin, so that other work gets the processor."""
    ort = _runtime()
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", str(int(not sums_are_exact())))
    values = [ort.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
    options.add_external_initializers(list(weights), values)
    try:
        return ort.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library has no class for all its errors
        raise NotRunnable(file, f"is refused ({error})") from error


@cache
def sums_are_exact() -> bool:
    """Return whether this processor multiplies int8 exactly.

    Those without VNNI cut the sum of two products off at 16 bits, unless ONNX Runtime goes a slower way.
    """
    ort, file = _runtime(), packaged_model("int8-sums.onnx")
    (sums,) = ort.InferenceSession(str(file), providers=["CPUExecutionProvider"]).run(None, {})
    return bool(np.allclose(sums, len(sums) * 127 * 255))


def logits_of(network: OnnxFile, tokens: TokenIds) -> FloatArray:
    """Return the (n,) logits that a network gives for n texts. Raises ModelError if it gives more."""
    logits = np.zeros(len(tokens.lengths), dtype=np.float32)
    for rows, batch in tokens.batches(BATCH_TOKENS * network.threads):
        found = network.states(batch)
        if found.shape != (len(rows), 1):
            raise ModelError(f"a cross-encoder must have one output, got {found.shape[1]}")
        logits[rows] = found[:, 0]
    return logits


def usable_threads() -> int:
    """Return how many threads a network computes with: OMP_NUM_THREADS, or the processors of the process."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available is not None else os.cpu_count() or 1
