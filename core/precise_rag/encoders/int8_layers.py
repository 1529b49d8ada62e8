"""Linear layers of an ONNX graph that are computed in int8."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from precise_rag.encoders.onnx_graph import Graph
from precise_rag.types import FloatArray

Precision = Literal["float32", "int8"]
"""How the linear layers of a network are computed; everything else is float32."""

_LARGEST = 127
"""Largest absolute value of a rounded number."""
_MIDDLE = 128
"""What stands for 0 among rounded inputs, which are unsigned."""
_DEVIATIONS = 6.0
"""How many standard deviations values are expected to reach."""
_LEAST_REACH = 0.17
"""How far GELU goes below 0."""
_PROBE = 64
"""Rows and columns of the product that is tried first."""


class Norm(NamedTuple):
    """Scale and shift, (k,) each, of the layer normalisation that values come from."""

    scale: FloatArray
    shift: FloatArray


class Layer(NamedTuple):
    """A linear layer, x @ weight.T + bias.

    weight: (n, k). bias: (n,), or None.
    reach: how far from 0 each column of x is expected to go, (k,); a function, as not all ask for it.
    """

    name: str
    weight: FloatArray
    bias: FloatArray | None
    reach: Callable[[], FloatArray]


Linear = Callable[[Graph, str, Layer], str]
"""A way to add a layer to a graph, given the name of its (t, k) input. Returns the output's name."""


def float32_linear(graph: Graph, x: str, layer: Layer) -> str:
    """Add a layer to a graph, in float32; see `Linear`."""
    given = [graph.weight(f"{layer.name}.weight", layer.weight)]
    given += [] if layer.bias is None else [graph.weight(f"{layer.name}.bias", layer.bias)]
    return graph.op("Gemm", x, *given, transB=1)


def with_precision(
    precision: Precision, build: Callable[[Linear], Graph], sample: Callable[[], Mapping[str, Any]]
) -> Graph:
    """Return a graph with its linear layers in a precision.

    build: makes the graph with this kind of linear layers.
    sample: inputs of the graph that are like those to come. For int8 the graph first reads them in float32,
        which shows how far the columns of each linear layer's input go.
    """
    if precision == "float32":
        return build(float32_linear)
    names = []

    def with_its_input_as_output(graph: Graph, x: str, layer: Layer) -> str:
        names.append(layer.name)
        graph.output(f"{layer.name}.input", x, "t", "k")
        return float32_linear(graph, x, layer)

    in_float32 = build(with_its_input_as_output).session(1, for_one_run=True)
    inputs = in_float32.run_several([f"{name}.input" for name in names], sample())
    return build(Int8Linear({n: np.abs(x).max(axis=0) for n, x in zip(names, inputs, strict=True)}))


class Int8Linear:
    """Linear layers that are multiplied in int8.

    seen: (k,) how far from 0 the columns of each layer's input went on a sample, by the layer's name.

    All columns of an input are brought to the same reach before they are rounded, and the weights make up for
    it. A column's reach is the expected one, or what was seen if that is more. It is fixed, so a row's result
    does not depend on the other rows; values that go further are cut off. Each row of weights has a scale.
    Source: Xiao et al., SmoothQuant (2023), eq. 3 and 4 with a migration strength of 1. Differs: the reach
    follows from the layer before (`reach_of_norm`, `reach_of_linear`); a sample only shows exceptions.
    """

    def __init__(self, seen: Mapping[str, FloatArray]) -> None:
        self._seen = seen
        self._rounded: dict[str, str] = {}

    def __call__(self, graph: Graph, x: str, layer: Layer) -> str:
        """Add a layer to a graph; see `Linear`."""
        name, bias = layer.name, layer.bias
        even = (np.maximum(self._seen[name], layer.reach()) / _LARGEST).astype(np.float32)
        one = graph.weight("one", np.ones((), dtype=np.float32))
        middle = graph.weight("middle", np.full((), _MIDDLE, dtype=np.uint8))
        if x not in self._rounded:
            evened = graph.op("Mul", x, graph.weight(f"{name}.even", 1 / even))
            self._rounded[x] = graph.op("QuantizeLinear", evened, one, middle)
        weight = layer.weight * even
        scale = np.maximum(np.abs(weight).max(axis=1) / _LARGEST, np.float32(1e-12))
        rounded = np.rint(weight / scale[:, None]).T
        kind, zero = (np.int8, 0) if sums_are_exact() else (np.uint8, _MIDDLE)
        return graph.op(
            "MatMulIntegerToFloat",
            self._rounded[x],
            graph.weight(f"{name}.rounded", (rounded + zero).astype(kind)),
            one,
            graph.weight(f"{name}.scale", scale),
            middle,
            graph.weight(f"{name}.zero", np.full(len(scale), zero, dtype=kind)),
            *([] if bias is None else [graph.weight(f"{name}.bias", bias)]),
        )


@cache
def sums_are_exact() -> bool:
    """Return whether this processor multiplies by signed weights exactly.

    Those without VNNI cut the sum of two products off at 16 bits; with unsigned weights, ONNX Runtime takes a
    slower way, which is exact.
    """
    graph = Graph()
    weights = graph.weight("weights", np.full((_PROBE, _PROBE), _LARGEST, dtype=np.int8))
    one = graph.weight("one", np.ones((), dtype=np.float32))
    zero = graph.weight("zero", np.zeros((), dtype=np.uint8))
    x = graph.input("x", "uint8", "t", "k")
    graph.output("sums", graph.op("MatMulIntegerToFloat", x, weights, one, one, zero), "t", "n")
    sums = graph.session(1).run("sums", {"x": np.full((_PROBE, _PROBE), 255, dtype=np.uint8)})
    return bool(np.allclose(sums, _PROBE * _LARGEST * 255, rtol=0.01))


def reach_of_norm(norm: Norm) -> FloatArray:
    """Return how far from 0 each output of a layer normalisation is expected to go; (k,)."""
    reach: FloatArray = np.maximum(np.abs(norm.shift) + _DEVIATIONS * np.abs(norm.scale), np.float32(1e-6))
    return reach


def reach_of_linear(weight: FloatArray, bias: FloatArray, norm: Norm, *, gelu: bool) -> FloatArray:
    """Return how far from 0 each output of a linear layer is expected to go; (n,).

    weight, bias: (n, k) and (n,) of the layer. norm: the layer normalisation before it, whose outputs are
    taken to be independent. gelu: whether the outputs go through GELU.
    """
    middle = weight @ norm.shift + bias
    deviation = _DEVIATIONS * np.sqrt(np.square(weight * norm.scale).sum(axis=1))
    highest = (middle if gelu else np.abs(middle)) + deviation
    reach: FloatArray = np.maximum(highest, np.float32(_LEAST_REACH if gelu else 1e-6))
    return reach
