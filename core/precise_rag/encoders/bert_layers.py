"""BERT's layers as operators of an ONNX graph, over tokens without padding."""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from precise_rag.encoders.bert_files import BertSettings
from precise_rag.encoders.int8_layers import int8_linear, reach_of_gelu, reach_of_norm
from precise_rag.encoders.onnx_graph import Graph
from precise_rag.models.checkpoint import Tensors
from precise_rag.types import FloatArray, IntArray

Precision = Literal["float32", "int8"]
"""How the linear layers are computed; everything else is float32."""
Reach = Callable[[], FloatArray]


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
    precision: Precision = "float32",
) -> str:
    """Add one of BERT's layers to a graph; return its (t, width) states.

    name: of the layer in `weights`. x: states. bias: added to the logits of the attention; (1, heads, s, s).
    """

    def linear(part: str, x: str, *, biased: bool = True, reach: Reach | None = None) -> str:
        weight = weights[f"{name}.{part}.weight"]
        added = weights[f"{name}.{part}.bias"] if biased else None
        if precision == "int8":
            return int8_linear(graph, f"{name}.{part}", x, weight, added, reach and reach())
        given = [graph.weight(f"{name}.{part}.weight", weight)]
        given += [] if added is None else [graph.weight(f"{name}.{part}.bias", added)]
        return graph.op("Gemm", x, *given, transB=1)

    three = [
        graph.op("Gather", linear(f"attention.self.{part}", x), layout.rows)
        for part in ("query", "key", "value")
    ]
    given = [*three, "", layout.lengths, *([bias] if bias else [])]
    attended = graph.op("MultiHeadAttention", *given, num_heads=settings.heads)
    flat = graph.weight("flat", np.array([-1, settings.width], dtype=np.int64))
    attended = graph.op("Gather", graph.op("Reshape", attended, flat), layout.packed)
    norm = f"{name}.attention.output.LayerNorm"
    added = linear("attention.output.dense", attended)
    x = normalized(graph, weights, norm, added, x, epsilon=settings.epsilon)
    of_norm = weights[f"{norm}.weight"], weights[f"{norm}.bias"]
    up = weights[f"{name}.intermediate.dense.weight"], weights[f"{name}.intermediate.dense.bias"]
    inner = graph.op(
        "BiasGelu",
        linear("intermediate.dense", x, biased=False, reach=partial(reach_of_norm, *of_norm)),
        graph.weight(f"{name}.intermediate.dense.bias", up[1]),
    )
    added = linear("output.dense", inner, reach=partial(reach_of_gelu, *up, *of_norm))
    return normalized(graph, weights, f"{name}.output.LayerNorm", added, x, epsilon=settings.epsilon)


def normalized(graph: Graph, weights: Tensors, name: str, x: str, y: str, *, epsilon: float) -> str:
    """Add the layer normalisation of x + y to a graph; return its output."""
    scale, shift = (graph.weight(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.op("SkipLayerNormalization", x, y, scale, shift, epsilon=epsilon)
