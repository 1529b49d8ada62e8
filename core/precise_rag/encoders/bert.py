"""BERT: its weights in files, and as an ONNX graph over tokens without padding."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from precise_rag.checkpoints.quantized import check_scales, dequantized
from precise_rag.checkpoints.saved import Tensors, read_tensors
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
from precise_rag.encoders.reading import Reading
from precise_rag.encoders.token_ids import TokenIds
from precise_rag.types import FloatArray
from precise_rag.vectors import linear

Config = Mapping[str, Any]
WORDS = "embeddings.word_embeddings.weight"
"""The largest tensor."""


def is_bert(reading: Reading) -> bool:
    """Return whether a model is a BERT in safetensors that can be run here."""
    config = reading.config
    return (
        config.get("model_type") == "bert"
        and config.get("hidden_act") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
        and (reading.folder / "model.safetensors").is_file()
    )


def bert_weights(folder: Path) -> Tensors:
    """Return the weights in a folder by their names, in float32. Raises ModelError.

    Matrices may be in int8, as `quantized` makes them. Those of the words stay so, with their scales.
    """
    given = {
        name.removeprefix("bert."): tensor
        for name, tensor in read_tensors(folder / "model.safetensors").items()
        if tensor.dtype != np.int64
    }
    small = {WORDS, f"{WORDS}_scale"} if f"{WORDS}_scale" in check_scales(given) else set()
    weights = dequantized({name: tensor for name, tensor in given.items() if name not in small})
    return weights | {name: given[name] for name in small}


def word_table(folder: Path) -> Tensors:
    """Return the word embeddings of a model in a folder, with their scales if they are in int8."""
    tensors = read_tensors(folder / "model.safetensors")
    return {name: tensors[name] for name in (WORDS, f"{WORDS}_scale") if name in tensors}


@contextmanager
def float32_folder(folder: Path) -> Iterator[Path]:
    """Yield a copy of the folder of a model with its weights in float32, as torch reads them; then remove it.

    Raises ModelError if the weights cannot be read.
    """
    weights = folder / "model.safetensors"
    with TemporaryDirectory(ignore_cleanup_errors=True) as made:
        shutil.copytree(folder, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns(weights.name))
        save_file(dequantized(read_tensors(weights)), Path(made, weights.name), metadata={"format": "pt"})
        yield Path(made)


def bert_layer(
    graph: Graph,
    weights: Tensors,
    name: str,
    x: str,
    config: Config,
    linear: Linear,
    before: Norm,
) -> str:
    """Add one of BERT's layers to the graph of a `BertNetwork`; return its (t, width) states.

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
    three = [graph.op("Gather", each, "rows") for each in three]
    attended = graph.op("MultiHeadAttention", *three, "", "lengths", num_heads=config["num_attention_heads"])
    flat = graph.weight("flat", np.array([-1, config["hidden_size"]], dtype=np.int64))
    attended = graph.op("Gather", graph.op("Reshape", attended, flat), "packed")
    reach = partial(reach_of_linear, *of("attention.self.value"), before, gelu=False)
    added = linear(graph, attended, layer("attention.output.dense", reach))
    norm = f"{name}.attention.output.LayerNorm"
    x = normalized(graph, weights, norm, added, x, epsilon=config["layer_norm_eps"])
    middle = Norm(*of("attention.output.LayerNorm"))
    up, up_bias = layer("intermediate.dense", partial(reach_of_norm, middle)), of("intermediate.dense")[1]
    inner = linear(graph, x, up._replace(bias=None))
    inner = graph.op("BiasGelu", inner, graph.weight(f"{up.name}.bias", up_bias))
    reach = partial(reach_of_linear, up.weight, up_bias, middle, gelu=True)
    added = linear(graph, inner, layer("output.dense", reach))
    return normalized(graph, weights, f"{name}.output.LayerNorm", added, x, epsilon=config["layer_norm_eps"])


def normalized(graph: Graph, weights: Tensors, name: str, x: str, y: str, *, epsilon: float) -> str:
    """Add the layer normalisation of x + y to a graph; return its output."""
    scale, shift = (graph.weight(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.op("SkipLayerNormalization", x, y, scale, shift, epsilon=epsilon)


class BertNetwork:
    """A BERT, as an ONNX Runtime session on the CPU; threads can share it.

    Texts of different lengths are computed without padding, except in the attention.
    config: its config.json. weights: by the names of `transformers`; see `bert_weights`. precision: of the
    linear layers. sample: the tokens of some text; used for int8, see `with_precision`.
    """

    output = "states"

    def __init__(
        self,
        config: Config,
        weights: Tensors,
        precision: Precision = "float32",
        sample: Callable[[], TokenIds] = lambda: TokenIds.joined([]),
    ) -> None:
        self.config, self.threads = config, usable_threads()
        graph = with_precision(
            precision, lambda linear: self._graph(weights, linear), lambda: self._inputs(sample())
        )
        self._session = graph.session(self.threads, for_callers=precision == "int8")

    def _graph(self, weights: Tensors, linear: Linear) -> Graph:
        config, graph = self.config, Graph()
        for name in ("ids", "kinds", "places", "packed"):
            graph.input(name, "int64", "t")
        graph.input("rows", "int64", "b", "s")
        graph.input("lengths", "int32", "b")
        kinds = weights["embeddings.token_type_embeddings.weight"]
        positions = weights["embeddings.position_embeddings.weight"]
        words = _words(graph, weights)
        at_places = graph.op("Gather", graph.weight("positions", positions), "places")
        of_kind = graph.op("Gather", graph.weight("kind", kinds), "kinds")
        at_places = graph.op("Add", at_places, of_kind)
        x = normalized(
            graph, weights, "embeddings.LayerNorm", words, at_places, epsilon=config["layer_norm_eps"]
        )
        last = "embeddings"
        for name in (f"encoder.layer.{number}" for number in range(config["num_hidden_layers"])):
            before = Norm(*(weights[f"{last}.LayerNorm.{part}"] for part in ("weight", "bias")))
            x = bert_layer(graph, weights, name, x, config, linear, before)
            last = f"{name}.output"
        graph.output("states", x, "t", "width")
        return graph

    def states(self, tokens: TokenIds) -> FloatArray:
        """Return the (t, width) last states of all tokens."""
        return self._session.run("states", self._inputs(tokens))

    @staticmethod
    def _inputs(tokens: TokenIds) -> dict[str, Any]:
        """The inputs of the graph, over t tokens of b texts.

        rows: (b, s) the token in each place of the rows that the attention reads, 0 at padding. packed: (t,)
        the place of each token there, places: that in its text. lengths: (b,) tokens of each text.
        """
        rows, _, is_token = TokenIds(np.arange(len(tokens.ids)), tokens.offsets).padded()
        return {
            "ids": tokens.ids,
            "kinds": np.zeros_like(tokens.ids) if tokens.kinds is None else tokens.kinds,
            "places": np.nonzero(is_token)[1],
            "rows": rows,
            "packed": np.flatnonzero(is_token),
            "lengths": tokens.lengths.astype(np.int32),
        }


class BertClassifier(BertNetwork):
    """A BERT with a pooler and a classifier. Its `states` are the (n, k) logits of n texts."""

    def __init__(self, config: Config, weights: Tensors, *how: Any) -> None:
        layers = "pooler.dense", "classifier"
        self._head = [(weights[f"{layer}.weight"], weights[f"{layer}.bias"]) for layer in layers]
        super().__init__(config, weights, *how)

    def states(self, tokens: TokenIds) -> FloatArray:
        """Return the (n, k) logits of texts."""
        (pool, pool_bias), (weight, bias) = self._head
        pooled = np.tanh(linear(super().states(tokens)[tokens.offsets[:-1]], pool) + pool_bias)
        return linear(pooled, weight) + bias


def _words(graph: Graph, weights: Tensors) -> str:
    """Add the word embeddings of tokens to a graph. Of a table in int8 only the rows of tokens are scaled."""
    table = weights[WORDS]
    rows = graph.op("Gather", graph.weight("words", table), "ids")
    if table.dtype != np.int8:
        return rows
    width, scales = table.shape[1], weights[f"{WORDS}_scale"].astype(np.float32)
    blocks = np.array([-1, scales.shape[1], width // scales.shape[1]], dtype=np.int64)
    scale = graph.op("Gather", graph.weight("words.scale", scales[..., None]), "ids")
    rows = graph.op("Reshape", graph.op("Cast", rows, to=1), graph.weight("words.blocks", blocks))
    flat = graph.weight("words.flat", np.array([-1, width], dtype=np.int64))
    return graph.op("Reshape", graph.op("Mul", rows, scale), flat)
