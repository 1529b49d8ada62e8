"""BERT's layers as operators of an ONNX graph, over tokens without padding."""

from typing import NamedTuple

import numpy as np

from precise_rag.encoders.bert_files import BertSettings
from precise_rag.encoders.onnx_graph import Graph
from precise_rag.models.checkpoint import Tensors
from precise_rag.types import IntArray


class Layout(NamedTuple):
    """Inputs of a graph that say where the tokens of each text are: in rows for the attention, else packed.

    rows: (b, s) the token in each place of the rows, 0 at padding. packed: (t,) the place of each token.
    lengths: (b,) tokens of each text.
    """

    rows: str
    packed: str
    lengths: str

    @classmethod
    def of(cls, graph: Graph) -> "Layout":
        """Declare the inputs."""
        return cls(
            graph.input("rows", "int64", "b", "s"),
            graph.input("packed", "int64", "t"),
            graph.input("lengths", "int32", "b"),
        )

    @staticmethod
    def inputs(lengths: IntArray) -> dict[str, IntArray]:
        """Return the inputs for texts of these lengths."""
        columns = np.arange(int(lengths.max()))
        is_token = columns < lengths[:, None]
        first = np.cumsum(lengths) - lengths
        rows = np.where(is_token, first[:, None] + columns, 0)
        return {"rows": rows, "packed": np.flatnonzero(is_token), "lengths": lengths.astype(np.int32)}


def bert_layer(
    graph: Graph,
    layout: Layout,
    weights: Tensors,
    name: str,
    x: str,
    settings: BertSettings,
    bias: str = "",
) -> str:
    """Add one of BERT's layers to a graph; return its (t, width) states.

    name: of the layer in `weights`. x: states. bias: added to the logits of the attention; (1, heads, s, s).
    """
    three = [
        graph.op("Gather", _linear(graph, weights, f"{name}.attention.self.{part}", x), layout.rows)
        for part in ("query", "key", "value")
    ]
    given = [*three, "", layout.lengths, *([bias] if bias else [])]
    attended = graph.op("MultiHeadAttention", *given, num_heads=settings.heads)
    flat = graph.weight("flat", np.array([-1, settings.width], dtype=np.int64))
    attended = graph.op("Gather", graph.op("Reshape", attended, flat), layout.packed)
    added = _linear(graph, weights, f"{name}.attention.output.dense", attended)
    x = normalized(graph, weights, f"{name}.attention.output.LayerNorm", added, x, epsilon=settings.epsilon)
    inner = graph.op(
        "BiasGelu",
        _linear(graph, weights, f"{name}.intermediate.dense", x, biased=False),
        graph.weight(f"{name}.intermediate.dense.bias", weights[f"{name}.intermediate.dense.bias"]),
    )
    added = _linear(graph, weights, f"{name}.output.dense", inner)
    return normalized(graph, weights, f"{name}.output.LayerNorm", added, x, epsilon=settings.epsilon)


def normalized(graph: Graph, weights: Tensors, name: str, x: str, y: str, *, epsilon: float) -> str:
    """Add the layer normalisation of x + y to a graph; return its output."""
    scale, shift = (graph.weight(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.op("SkipLayerNormalization", x, y, scale, shift, epsilon=epsilon)


def _linear(graph: Graph, weights: Tensors, name: str, x: str, *, biased: bool = True) -> str:
    parts = ("weight", "bias") if biased else ("weight",)
    given = [graph.weight(f"{name}.{part}", weights[f"{name}.{part}"]) for part in parts]
    return graph.op("Gemm", x, *given, transB=1)
