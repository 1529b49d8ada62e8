"""Networks for ONNX Runtime, written as ONNX graphs whose weights stay where they are."""

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from threading import BoundedSemaphore, get_ident
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag._processes import PerProcess
from precise_rag.checkpoints.saved import Tensors
from precise_rag.errors import ModelError
from precise_rag.types import FloatArray

_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
_MICROSOFT = "com.microsoft"
_OPSETS = {"": 17, _MICROSOFT: 1}
_FUSED = {"BiasGelu", "MatMulIntegerToFloat", "MultiHeadAttention", "SkipLayerNormalization"}
"""Operators of ONNX Runtime itself: several standard ones in one."""
_SMALL = 1024
"""Bytes up to which a weight is written into the graph."""


class Graph:
    """An ONNX graph in the making: operators in the order in which they run, and weights by name.

    The large weights are not copied: the session reads them from the arrays, which may be mapped files.
    Source: onnx.proto of ONNX, IR version 8; the operators of ONNX Runtime are in its ContribOperators.md.
    """

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._weights: Tensors = {}

    def input(self, name: str, dtype: str, *shape: str) -> str:
        """Declare an input. shape: a name for each dimension. Returns its name."""
        self._inputs.append(_value(name, dtype, shape))
        return name

    def output(self, name: str, value: str, *shape: str) -> None:
        """Declare an output of float32, which is `value`."""
        self._nodes.append(_field(1, value) + _field(2, name) + _field(4, "Identity"))
        self._outputs.append(_value(name, "float32", shape))

    def weight(self, name: str, array: npt.NDArray[Any]) -> str:
        """Add a constant. A name that is given twice is the same constant. Returns its name."""
        self._weights[name] = np.ascontiguousarray(array)
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator. inputs: names of values; "" where one is left out. Returns its output's name."""
        output = f"{kind}{len(self._nodes)}"
        node = b"".join(_field(1, name) for name in inputs) + _field(2, output) + _field(4, kind)
        node += b"".join(_field(5, _attribute(*item)) for item in attributes.items())
        self._nodes.append(node + (_field(7, _MICROSOFT) if kind in _FUSED else b""))
        return output

    def session(self, threads: int, *, for_one_run: bool = False, for_callers: bool = False) -> "Session":
        """Load the graph into ONNX Runtime, on the CPU.

        threads: how many compute. Idle ones do not spin, so that other work gets the processor.
        for_one_run: load faster and run more slowly.
        for_callers: several threads will run it at a time; see `Session`.
        """
        model = self._model()
        large = {name: array for name, array in self._weights.items() if array.nbytes > _SMALL}
        session = loaded(model, large, threads, for_one_run)
        is_shared = for_callers and threads > 1
        return Session(session, large, (lambda: loaded(model, large, 1)) if is_shared else None)

    def _model(self) -> bytes:
        tensors = (_tensor(name, array) for name, array in self._weights.items())
        parts = ((1, self._nodes), (2, ["network"]), (5, tensors), (11, self._inputs), (12, self._outputs))
        graph = b"".join(_field(number, item) for number, items in parts for item in items)
        opsets = (_field(8, _field(1, domain) + _field(2, version)) for domain, version in _OPSETS.items())
        return _field(1, 8) + _field(7, graph) + b"".join(opsets)


class Session:
    """A graph in ONNX Runtime, on the CPU; threads can share it.

    session: of ONNX Runtime. weights: what it reads as long as it lives.
    alone: loads the same with one thread. It is used for calls that begin while others run: several threads
        for each of several calls do the same work in more time. Default: `session` takes all calls.
    """

    def __init__(self, session: Any, weights: Tensors, alone: Callable[[], Any] | None = None) -> None:
        self._session, self._weights, self._load_alone = session, weights, alone
        self._alone: PerProcess[Any] = PerProcess()
        import onnxruntime as ort  # here: it takes time, and not all need it

        self._options = ort.RunOptions()
        self._options.only_execute_path_to_fetches = True

    def run(self, output: str, inputs: Mapping[str, Any]) -> FloatArray:
        """Return one output; only the operators that it needs run. Raises ModelError."""
        return self.run_several([output], inputs)[0]

    def run_several(self, outputs: Sequence[str], inputs: Mapping[str, Any]) -> list[FloatArray]:
        """Return some outputs, in their order; only the operators that they need run. Raises ModelError."""
        running, caller = _running.get(set), get_ident()
        with _slots.get(lambda: BoundedSemaphore(usable_threads())):
            session = self._session
            if running and self._load_alone is not None:
                session = self._alone.get(self._load_alone)
            running.add(caller)
            try:
                states: list[FloatArray] = session.run(list(outputs), inputs, self._options)
            except Exception as error:  # the library has no class for all its errors
                raise ModelError(f"the network cannot be run: {error}") from error
            finally:
                running.discard(caller)
        return states


_running: PerProcess[set[int]] = PerProcess()
"""The threads that run a session."""
_slots: PerProcess[BoundedSemaphore] = PerProcess()
"""As many as processors: more calls at a time would need more memory and end no sooner."""


def loaded(model: bytes | str, weights: Tensors, threads: int, for_one_run: bool = False) -> Any:
    """Load a model, or the file of one, into ONNX Runtime; see `Graph.session`. Raises ModelError."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if for_one_run:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.disable_prepacking", "1")
    values = [ort.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
    options.add_external_initializers(list(weights), values)
    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library has no class for all its errors
        raise ModelError(f"the network cannot be loaded: {error}") from error


def usable_threads() -> int:
    """Return how many threads a network computes with: OMP_NUM_THREADS, or the processors of the process."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available is not None else os.cpu_count() or 1


def _tensor(name: str, array: npt.NDArray[Any]) -> bytes:
    head = b"".join(_field(1, size) for size in array.shape)
    head += _field(2, _TYPES[str(array.dtype)]) + _field(8, name)
    if array.nbytes <= _SMALL:
        return head + _field(9, array.tobytes())
    return head + _IN_MEMORY + _place("length", str(array.nbytes)) + _field(14, 1)


def _place(key: str, value: str) -> bytes:
    return _field(13, _field(1, key) + _field(2, value))


def _value(name: str, dtype: str, shape: tuple[str, ...]) -> bytes:
    dimensions = b"".join(_field(1, _field(2, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, _TYPES[dtype]) + _field(2, dimensions)))


def _attribute(name: str, value: int | float) -> bytes:
    number, kind = (2, 1) if isinstance(value, float) else (3, 2)
    return _field(1, name) + _field(number, value) + _field(20, kind)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    """One field of a protocol buffer message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


_IN_MEMORY = _place("location", "in memory") + _place("offset", "0")
