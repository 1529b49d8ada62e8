"""BERT encoders on ONNX Runtime."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from precise_rag._processes import ProcessLock
from precise_rag.checkpoints.saved import Tensors
from precise_rag.encoders.bert_files import WORDS, BertSettings, bert_weights
from precise_rag.encoders.bert_layers import Layout, bert_layer, normalized
from precise_rag.encoders.int8_layers import Linear, Norm, Precision, with_precision
from precise_rag.encoders.onnx_graph import Graph, usable_threads
from precise_rag.encoders.token_ids import TokenIds, places
from precise_rag.types import FloatArray, IntArray


class BertNetwork:
    """A BERT encoder, as an ONNX Runtime session on the CPU.

    Texts of different lengths are computed without padding, except in the attention.
    weights: by the names of `transformers`; see `bert_weights`. n_layers: how many are loaded; default: all.
    precision: of the linear layers. sample: the tokens of some text; used for int8, see `with_precision`.
    norms: (attribute) the normalisations that the states come from, after each layer.
    """

    def __init__(
        self,
        settings: BertSettings,
        weights: Tensors,
        threads: int,
        precision: Precision,
        n_layers: int,
        sample: Callable[[], TokenIds],
    ) -> None:
        self.settings, self.threads = settings, threads
        names = ["embeddings", *(f"encoder.layer.{number}.output" for number in range(n_layers))]
        self.norms = [Norm(*(weights[f"{n}.LayerNorm.{part}"] for part in ("weight", "bias"))) for n in names]
        graph = with_precision(
            precision, lambda linear: self._graph(weights, linear), lambda: self._inputs(sample())
        )
        self._session = graph.session(threads, for_callers=precision == "int8")

    def _graph(self, weights: Tensors, linear: Linear) -> Graph:
        settings, graph = self.settings, Graph()
        layout = Layout.of(graph)
        ids, places = graph.input("ids", "int64", "t"), graph.input("places", "int64", "t")
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        positions = weights["embeddings.position_embeddings.weight"] + kind
        x = normalized(
            graph,
            weights,
            "embeddings.LayerNorm",
            _words(graph, weights, ids),
            graph.op("Gather", graph.weight("positions", positions), places),
            epsilon=settings.epsilon,
        )
        graph.output("states0", x, "t", "width")
        for number, before in enumerate(self.norms[:-1]):
            name = f"encoder.layer.{number}"
            x = bert_layer(graph, layout, weights, name, x, settings, linear, before)
            graph.output(f"states{number + 1}", x, "t", "width")
        return graph

    def states(self, tokens: TokenIds, layer: int) -> FloatArray:
        """Return the (t, width) states of all tokens after a layer; 0 stands for the embeddings."""
        return self._session.run(f"states{layer}", self._inputs(tokens))

    @staticmethod
    def _inputs(tokens: TokenIds) -> dict[str, Any]:
        lengths = tokens.lengths
        return {"ids": tokens.ids, "places": places(lengths), **Layout.inputs(lengths)}

    def vectors(self, tokens: TokenIds) -> FloatArray:
        """Return the (n, width) vectors of texts, not scaled."""
        states = self.states(tokens, self.settings.layers)
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
    n_layers: int,
    sample: Callable[[], TokenIds],
) -> BertNetwork:
    """Return the network of a folder; those who ask for the same one share it.

    threads: default: `usable_threads`. The others: as for `BertNetwork`.
    Raises ModelError if the weights do not fit the settings.
    """
    key = (os.getpid(), folder, threads or usable_threads(), precision, n_layers)
    with _sharing:
        network = _shared.get(key)
        if network is None:
            network = BertNetwork(settings, bert_weights(folder, settings), *key[2:], sample)
            _shared[key] = network
    return network


_sharing = ProcessLock()
_shared: WeakValueDictionary[tuple[int, Path, int, Precision, int], BertNetwork] = WeakValueDictionary()
