"""BERT as an ONNX graph, over tokens without padding, and BERT encoders on ONNX Runtime."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from precise_rag._processes import ProcessLock
from precise_rag.checkpoints.saved import Tensors
from precise_rag.encoders.bert_files import WORDS, BertSettings, bert_weights
from precise_rag.encoders.int8_layers import (
    Layer,
    Linear,
    Norm,
    Precision,
    reach_of_linear,
    reach_of_norm,
    with_precision,
)
from precise_rag.encoders.onnx_graph import Graph, usable_threads
from precise_rag.encoders.token_ids import TokenIds, places
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
) -> str:
    """Add one of BERT's layers to a graph; return its (t, width) states.

    name: of the layer in `weights`. x: states. linear: adds a linear layer. before: the normalisation that
    the states come from.
    """

    def of(part: str) -> tuple[FloatArray, FloatArray]:
        return weights[f"{name}.{part}.weight"], weights[f"{name}.{part}.bias"]

    def layer(part: str, reach: Callable[[], FloatArray]) -> Layer:
        return Layer(f"{name}.{part}", *of(part), reach)

    three = [
        linear(graph, x, layer(f"attention.self.{part}", partial(reach_of_norm, before)))
        for part in ("query", "key", "value")
    ]
    three = [graph.op("Gather", each, layout.rows) for each in three]
    attended = graph.op("MultiHeadAttention", *three, "", layout.lengths, num_heads=settings.heads)
    flat = graph.weight("flat", np.array([-1, settings.width], dtype=np.int64))
    attended = graph.op("Gather", graph.op("Reshape", attended, flat), layout.packed)
    reach = partial(reach_of_linear, *of("attention.self.value"), before, gelu=False)
    added = linear(graph, attended, layer("attention.output.dense", reach))
    norm = f"{name}.attention.output.LayerNorm"
    x = normalized(graph, weights, norm, added, x, epsilon=settings.epsilon)
    middle = Norm(*of("attention.output.LayerNorm"))
    up, up_bias = layer("intermediate.dense", partial(reach_of_norm, middle)), of("intermediate.dense")[1]
    inner = linear(graph, x, up._replace(bias=None))
    inner = graph.op("BiasGelu", inner, graph.weight(f"{up.name}.bias", up_bias))
    reach = partial(reach_of_linear, up.weight, up_bias, middle, gelu=True)
    added = linear(graph, inner, layer("output.dense", reach))
    return normalized(graph, weights, f"{name}.output.LayerNorm", added, x, epsilon=settings.epsilon)


def normalized(graph: Graph, weights: Tensors, name: str, x: str, y: str, *, epsilon: float) -> str:
    """Add the layer normalisation of x + y to a graph; return its output."""
    scale, shift = (graph.weight(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.op("SkipLayerNormalization", x, y, scale, shift, epsilon=epsilon)


class BertNetwork:
    """A BERT, as an ONNX Runtime session on the CPU.

    Texts of different lengths are computed without padding, except in the attention.
    weights: by the names of `transformers`; see `bert_weights`. precision: of the linear layers.
    sample: the tokens of some text; used for int8, see `with_precision`.
    """

    def __init__(
        self,
        settings: BertSettings,
        weights: Tensors,
        threads: int,
        precision: Precision,
        sample: Callable[[], TokenIds],
    ) -> None:
        self.settings, self.threads = settings, threads
        graph = with_precision(
            precision, lambda linear: self._graph(weights, linear), lambda: self._inputs(sample())
        )
        self._session = graph.session(threads, for_callers=precision == "int8")

    def _graph(self, weights: Tensors, linear: Linear) -> Graph:
        settings, graph = self.settings, Graph()
        layout = Layout.of(graph)
        ids, places = graph.input("ids", "int64", "t"), graph.input("places", "int64", "t")
        kinds = weights["embeddings.token_type_embeddings.weight"]
        positions = weights["embeddings.position_embeddings.weight"]
        words = _words(graph, weights, ids)
        at_places = graph.op("Gather", graph.weight("positions", positions), places)
        of_kind = graph.op("Gather", graph.weight("kind", kinds), graph.input("kinds", "int64", "t"))
        at_places = graph.op("Add", at_places, of_kind)
        x = normalized(graph, weights, "embeddings.LayerNorm", words, at_places, epsilon=settings.epsilon)
        last = "embeddings"
        for name in (f"encoder.layer.{number}" for number in range(settings.layers)):
            before = Norm(*(weights[f"{last}.LayerNorm.{part}"] for part in ("weight", "bias")))
            x = bert_layer(graph, layout, weights, name, x, settings, linear, before)
            last = f"{name}.output"
        graph.output("states", x, "t", "width")
        return graph

    def states(self, tokens: TokenIds, kinds: IntArray | None = None) -> FloatArray:
        """Return the (t, width) last states of all tokens.

        kinds: (t,) the type of each token; default: all of the first.
        """
        return self._session.run("states", self._inputs(tokens, kinds))

    @staticmethod
    def _inputs(tokens: TokenIds, kinds: IntArray | None = None) -> dict[str, Any]:
        lengths = tokens.lengths
        kinds = np.zeros(len(tokens.ids), dtype=np.int64) if kinds is None else kinds
        return {"ids": tokens.ids, "kinds": kinds, "places": places(lengths), **Layout.inputs(lengths)}

    def vectors(self, tokens: TokenIds) -> FloatArray:
        """Return the (n, width) vectors of texts, not scaled."""
        states = self.states(tokens)
        if self.settings.pooling == "cls":
            return states[tokens.offsets[:-1]]
        return means(states, tokens.lengths)


def _words(graph: Graph, weights: Tensors, ids: str) -> str:
    """Add the word embeddings of tokens to a graph. Of a table in int8 only the rows of tokens are scaled."""
    table = weights[WORDS]
    rows = graph.op("Gather", graph.weight("words", table), ids)
    if table.dtype != np.int8:
        return rows
    width, scales = table.shape[1], weights[f"{WORDS}_scale"].astype(np.float32)
    blocks = np.array([-1, scales.shape[1], width // scales.shape[1]], dtype=np.int64)
    scale = graph.op("Gather", graph.weight("words.scale", scales[..., None]), ids)
    rows = graph.op("Reshape", graph.op("Cast", rows, to=1), graph.weight("words.blocks", blocks))
    flat = graph.weight("words.flat", np.array([-1, width], dtype=np.int64))
    return graph.op("Reshape", graph.op("Mul", rows, scale), flat)


def means(states: FloatArray, lengths: IntArray) -> FloatArray:
    """Return the (n, width) mean state of each text. lengths: (n,) tokens of each, which lie in order."""
    pooled: FloatArray = np.add.reduceat(states, np.cumsum(lengths) - lengths)
    pooled /= lengths[:, None]
    return pooled


def bert_network(
    folder: Path,
    settings: BertSettings,
    threads: int | None,
    precision: Precision,
    sample: Callable[[], TokenIds],
) -> BertNetwork:
    """Return the network of a folder; those who ask for the same one share it.

    threads: default: `usable_threads`. The others: as for `BertNetwork`.
    Raises ModelError if the weights do not fit the settings.
    """
    key = (os.getpid(), folder, threads or usable_threads(), precision)
    with _sharing:
        network = _shared.get(key)
        if network is None:
            network = BertNetwork(settings, bert_weights(folder, settings), *key[2:], sample)
            _shared[key] = network
    return network


_sharing = ProcessLock()
_shared: WeakValueDictionary[tuple[int, Path, int, Precision], BertNetwork] = WeakValueDictionary()
