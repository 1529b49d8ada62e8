"""Linear layers of an ONNX graph that are computed in int8."""

from functools import cache

import numpy as np

from precise_rag.encoders.onnx_graph import Graph
from precise_rag.types import FloatArray

_LARGEST = 127
"""Largest absolute value of a rounded weight."""
_DEVIATIONS = 6.0
"""How many standard deviations values are expected to reach."""
_LEAST_REACH = 0.17
"""How far GELU goes below 0."""
_PROBE = 64
"""Rows and columns of the product that is tried first."""


def int8_linear(
    graph: Graph,
    name: str,
    x: str,
    weight: FloatArray,
    bias: FloatArray | None = None,
    reach: FloatArray | None = None,
) -> str:
    """Add x @ weight.T + bias to a graph, multiplied in int8; return its output.

    name: of the layer. x: (t, k) values. weight: (n, k). bias: (n,); default: none.
    reach: (k,) how far from 0 each column of x is expected to go; all columns are brought to the same reach
        before they are rounded, and the weights make up for it. Default: columns are taken as they are.

    x is rounded with one scale for all its values, found in each run; each row of weights has its own.
    Source: Xiao et al., SmoothQuant (2023), eq. 3 and 4 with a migration strength of 1. Differs: the reach is
    not measured on samples, but follows from the layer before (`reach_of_norm`, `reach_of_gelu`).
    """
    if reach is not None:
        even = (reach / np.exp(np.log(reach).mean())).astype(np.float32)
        x, weight = graph.op("Mul", x, graph.weight(f"{name}.even", 1 / even)), weight * even
    scale = np.maximum(np.abs(weight).max(axis=1) / _LARGEST, np.float32(1e-12))
    rounded = np.rint(weight / scale[:, None]).T
    kind, zero = (np.int8, 0) if sums_are_exact() else (np.uint8, 128)
    given = [
        graph.weight(f"{name}.rounded", (rounded + zero).astype(kind)),
        graph.weight(f"{name}.scale", scale),
        graph.weight(f"{name}.zero", np.full(len(scale), zero, dtype=kind)),
    ]
    added = [] if bias is None else [graph.weight(f"{name}.bias", bias)]
    return graph.op("DynamicQuantizeMatMul", x, *given, *added)


@cache
def sums_are_exact() -> bool:
    """Return whether this processor multiplies by signed weights exactly.

    Those without VNNI cut the sum of two products off at 16 bits; with unsigned weights, ONNX Runtime takes a
    slower way, which is exact.
    """
    graph = Graph()
    weights = np.full((_PROBE, _PROBE), _LARGEST, dtype=np.int8)
    given = [graph.weight("weights", weights), graph.weight("scale", np.ones(_PROBE, dtype=np.float32))]
    x = graph.input("x", "float32", "t", "k")
    graph.output("sums", graph.op("DynamicQuantizeMatMul", x, *given), "t", "n")
    sums = graph.session(1).run("sums", {"x": np.ones((_PROBE, _PROBE), dtype=np.float32)})
    return bool(np.allclose(sums, _PROBE * _LARGEST, rtol=0.01))


def reach_of_norm(scale: FloatArray, shift: FloatArray) -> FloatArray:
    """Return how far from 0 each output of a layer normalisation is expected to go. scale, shift: (k,)."""
    reach: FloatArray = np.maximum(np.abs(shift) + _DEVIATIONS * np.abs(scale), np.float32(1e-6))
    return reach


def reach_of_gelu(weight: FloatArray, bias: FloatArray, scale: FloatArray, shift: FloatArray) -> FloatArray:
    """Return how far from 0 each output of GELU is expected to go.

    weight, bias: (n, k) and (n,) of the linear layer before it. scale, shift: (k,) of the layer normalisation
    before that, whose outputs are taken to be independent.
    """
    deviation = np.sqrt(np.square(weight * scale).sum(axis=1))
    highest = weight @ shift + bias + _DEVIATIONS * deviation
    reach: FloatArray = np.maximum(highest, np.float32(_LEAST_REACH))
    return reach
