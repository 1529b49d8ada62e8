"""BERT's layers as operators of an ONNX graph, over tokens without padding."""

from functools import partial
from typing import NamedTuple

import numpy as np

from precise_rag.checkpoints.saved import Tensors
from precise_rag.encoders.bert_files import BertSettings
from precise_rag.encoders.int8_layers import Linear, Norm, reach_of_linear, reach_of_norm
from precise_rag.encoders.onnx_graph import Graph
from precise_rag.types import FloatArray, IntArray


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
    linear: Linear,
    before: Norm,
    bias: str = "",
) -> str:
    """Add one of BERT's layers to a graph; return its (t, width) states.

    name: of the layer in `weights`. x: states. linear: adds a linear layer. before: the normalisation that
    the states come from. bias: added to the logits of the attention; (1, heads, s, s).
    """

    def of(part: str) -> tuple[FloatArray, FloatArray]:
        return weights[f"{name}.{part}.weight"], weights[f"{name}.{part}.bias"]

    three = [
        linear(graph, f"{name}.{part}", x, *of(part), partial(reach_of_norm, before))
        for part in ("attention.self.query", "attention.self.key", "attention.self.value")
    ]
    three = [graph.op("Gather", each, layout.rows) for each in three]
    given = [*three, "", layout.lengths, *([bias] if bias else [])]
    attended = graph.op("MultiHeadAttention", *given, num_heads=settings.heads)
    flat = graph.weight("flat", np.array([-1, settings.width], dtype=np.int64))
    attended = graph.op("Gather", graph.op("Reshape", attended, flat), layout.packed)
    norm = f"{name}.attention.output.LayerNorm"
    reach = partial(reach_of_linear, *of("attention.self.value"), before, gelu=False)
    part = "attention.output.dense"
    added = linear(graph, f"{name}.{part}", attended, *of(part), reach)
    x = normalized(graph, weights, norm, added, x, epsilon=settings.epsilon)
    middle = Norm(weights[f"{norm}.weight"], weights[f"{norm}.bias"])
    part = f"{name}.intermediate.dense"
    weight, added_before = of("intermediate.dense")
    inner = linear(graph, part, x, weight, None, partial(reach_of_norm, middle))
    inner = graph.op("BiasGelu", inner, graph.weight(f"{part}.bias", added_before))
    reach = partial(reach_of_linear, weight, added_before, middle, gelu=True)
    added = linear(graph, f"{name}.output.dense", inner, *of("output.dense"), reach)
    return normalized(graph, weights, f"{name}.output.LayerNorm", added, x, epsilon=settings.epsilon)


def normalized(graph: Graph, weights: Tensors, name: str, x: str, y: str, *, epsilon: float) -> str:
    """Add the layer normalisation of x + y to a graph; return its output."""
    scale, shift = (graph.weight(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.op("SkipLayerNormalization", x, y, scale, shift, epsilon=epsilon)
