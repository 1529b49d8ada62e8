"""Write the ONNX file of a packaged BERT, with its linear layers in int8 or float32.

    python -m training.onnx_file MODEL [--float32]

MODEL is encoder-e5, encoder-minilm (in float32) or reranker-cascade in precise_rag/models, or the folder of
one like these. Its weights stay in model.safetensors, where model.onnx points to; the words of a
cross-encoder are those of the packaged encoder. Whoever writes the file of an encoder again enters the
printed checksum in precise_rag/encoders/packaged.toml.

Inputs: input_ids, attention_mask and, for a cross-encoder, token_type_ids, (b, s) each. Padding is at the end
of a row, and is left out of all but the attention. Output: sentence_embedding, (b, width), the mean of the
states of a text, or logits, (b, 1).
"""

import argparse
import hashlib
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from transformers import BertConfig, BertModel

from precise_rag.checkpoints import (
    Tensors,
    dequantized,
    load_checkpoint,
    packaged_model,
    read_tensors,
    save_checkpoint,
)
from precise_rag.encoders.local import E5, PACKAGED
from precise_rag.encoders.reading import reading_of
from precise_rag.rerank.pairs import NETWORK, WORDS, Piece, network_checksum, tokens_of_pairs
from precise_rag.types import FloatArray

BLOCK = 64
"""Columns of a matrix in int8 that share a scale."""
SAMPLE = "What is it?", 'On 3 May 1904, the "harbour" (built by Ilse Brandt) was closed; why?'
"""A query and a text that show how far the inputs of linear layers go."""
FUSED = {"BiasGelu", "MatMulIntegerToFloat", "MultiHeadAttention"}
"""Operators of ONNX Runtime itself, in its ContribOperators.md."""
TYPES = {"I8": TensorProto.INT8, "F16": TensorProto.FLOAT16, "F32": TensorProto.FLOAT}
LARGEST, MIDDLE = 127, 128
"""Largest absolute value of a rounded number, and what stands for 0 among inputs, which are unsigned."""
DEVIATIONS = 6.0
"""How many standard deviations values are expected to reach."""
MASKED = -30.0
"""What is added to the scores of padding in the attention: enough that no sum in float32 changes. With less
than -80 its weights would be denormal numbers, and the attention takes twice as long."""
LEAST_REACH = 0.17
"""How far GELU goes below 0."""
Pair = tuple[FloatArray, FloatArray]
"""Weight and bias of a layer; of a layer normalisation, (k,) each."""
_WEIGHTS, _SUMS = "model.safetensors", "int8-sums.onnx"


class Graph:
    """An ONNX graph in the making, over tensors in the model.safetensors of folders; the last one is its own.

    values: (attribute) the tensors in float32.
    """

    def __init__(self, *folders: Path) -> None:
        self.values: Tensors = {}
        self._nodes: list[Any] = []
        self._weights: dict[str, Any] = {}
        self._stored: dict[str, tuple[str, list[int], dict[str, Any]]] = {}
        for folder in folders:
            self.values |= dequantized(read_tensors(folder / _WEIGHTS))
            place = _WEIGHTS if folder == folders[-1] else f"../{folder.name}/{_WEIGHTS}"
            with (folder / _WEIGHTS).open("rb") as file:
                (size,) = struct.unpack("<Q", file.read(8))
                header = json.loads(file.read(size))
            header.pop("__metadata__", None)
            for name, tensor in header.items():
                first, end = tensor["data_offsets"]
                at = {"location": place, "offset": 8 + size + first, "length": end - first}
                self._stored[name] = tensor["dtype"], tensor["shape"], at

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator; return the name of its output."""
        name = f"{kind}{len(self._nodes)}"
        domain = "com.microsoft" if kind in FUSED else ""
        self._nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        """Add a weight that is written into the graph; return its name."""
        name = f"constant{len(self._weights)}"
        self._weights[name] = numpy_helper.from_array(np.array(values, dtype), name)
        return name

    def read(self, name: str, rows: str = "") -> str:
        """Add a tensor, or some rows of one, in float32; a matrix in int8 as (n, blocks, columns of a block).

        Returns its name.
        """
        parts = [self._external(one) for one in (name, f"{name}_scale") if one in self._stored]
        parts = [self.op("Gather", one, rows) for one in parts] if rows else parts
        if len(parts) > 1:
            n_blocks = self._stored[f"{name}_scale"][1][1]
            parts = [self.reshape(one, [0, n_blocks, -1]) for one in parts]
        parts = [self.op("Cast", one, to=TensorProto.FLOAT) for one in parts]
        return self.op("Mul", *parts) if len(parts) > 1 else parts[0]

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        """Add a change of shape; return the name of its output."""
        return self.op("Reshape", x, self.constant(shape, np.int64))

    def both(self, name: str) -> list[str]:
        """Add the weight and bias of a layer in float32; return their names."""
        return [self.read(f"{name}.{part}") for part in ("weight", "bias")]

    def model(self, inputs: Sequence[str], output: tuple[str, str]) -> bytes:
        """Return the file. output: the name of a value of the graph, and the name that it has outside."""
        nodes = [*self._nodes, helper.make_node("Identity", [output[0]], [output[1]])]
        rows = [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"]) for name in inputs]
        found = helper.make_tensor_value_info(output[1], TensorProto.FLOAT, ["b", "width"])
        graph = helper.make_graph(nodes, "network", rows, [found], list(self._weights.values()))
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
        return made

    def _external(self, name: str) -> str:
        dtype, shape, at = self._stored[name]
        weight = TensorProto(name=name, data_type=TYPES[dtype], dims=shape)
        weight.data_location = TensorProto.EXTERNAL
        for key, value in at.items():
            weight.external_data.add(key=key, value=str(value))
        self._weights[name] = weight
        return name


class Bert:
    """A BERT in a graph. config: its config.json. seen: see `largest_inputs`; None: for float32."""

    def __init__(self, graph: Graph, config: dict[str, Any], seen: dict[str, FloatArray] | None) -> None:
        self._graph, self._config, self._seen = graph, config, seen
        self._rounded: dict[str, str] = {}
        self._one, self._middle = graph.constant(1), graph.constant(MIDDLE, np.uint8)

    def states(self, ids: str, mask: str, kinds: str = "") -> tuple[str, str]:
        """Add all layers to the graph.

        Returns the (t, width) states, and the (b, s) place of each token there, of padding the one before.
        """
        graph, op = self._graph, self._graph.op
        zero, one, axis = (graph.constant(n, np.int64) for n in (0, 1, [1]))
        flat = graph.reshape(mask, [-1])
        packed = graph.reshape(op("NonZero", flat), [-1])
        rows = op("Reshape", op("Sub", op("CumSum", flat, zero), one), op("Shape", mask))
        lengths = op("Cast", op("ReduceSum", mask, axis, keepdims=0), to=TensorProto.INT32)
        at = op("NonZero", mask)
        tokens, places = op("Transpose", at, perm=[1, 0]), op("Gather", at, one)
        kind = op("GatherND", kinds, tokens) if kinds else op("Mul", places, zero)
        words = graph.reshape(graph.read(WORDS, op("GatherND", ids, tokens)), [0, -1])
        around = (
            op("Gather", graph.read(f"embeddings.{name}_embeddings.weight"), where)
            for name, where in (("position", places), ("token_type", kind))
        )
        x = self._normalized("embeddings.LayerNorm", words, op("Add", *around))
        before = "embeddings.LayerNorm"
        for name in (f"encoder.layer.{number}" for number in range(self._config["num_hidden_layers"])):
            x = self._layer(name, x, self._of(before), rows, packed, lengths)
            before = f"{name}.output.LayerNorm"
        return x, rows

    def _layer(self, name: str, x: str, before: Pair, rows: str, packed: str, lengths: str) -> str:
        """Add a layer to the graph; return its states. before: the normalisation that x comes from."""
        graph, op, heads = self._graph, self._graph.op, self._config["num_attention_heads"]
        three = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        read = [op("Gather", self._linear(one, x, reach_of_norm(before)), rows) for one in three]
        attended = op("MultiHeadAttention", *read, "", lengths, num_heads=heads, mask_filter_value=MASKED)
        attended = op("Gather", graph.reshape(attended, [-1, self._config["hidden_size"]]), packed)
        reach = reach_of_linear(*self._of(three[2]), before, gelu=False)
        added = self._linear(f"{name}.attention.output.dense", attended, reach)
        x = self._normalized(f"{name}.attention.output.LayerNorm", added, x)
        middle, up = self._of(f"{name}.attention.output.LayerNorm"), f"{name}.intermediate.dense"
        inner = op("BiasGelu", self._linear(up, x, reach_of_norm(middle), biased=False), graph.both(up)[1])
        added = self._linear(f"{name}.output.dense", inner, reach_of_linear(*self._of(up), middle, gelu=True))
        return self._normalized(f"{name}.output.LayerNorm", added, x)

    def _linear(self, name: str, x: str, reach: FloatArray, *, biased: bool = True) -> str:
        """Add a linear layer. reach: (k,) how far from 0 each column of x is expected to go.

        In int8, all columns of x are brought to the same reach before they are rounded, and the weights make
        up for it. A column's reach is the expected one, or what was seen if that is more. It is fixed, so a
        row's result does not depend on the others; values that go further are cut off. Each row of weights
        has a scale. Source: Xiao et al., SmoothQuant (2023), eq. 3 and 4 with a migration strength of 1.
        Differs: the reach follows from the layer before; a sample only shows exceptions.
        """
        graph, op = self._graph, self._graph.op
        weight, bias = graph.both(name)
        given = [bias] if biased else []
        if self._seen is None:
            return op("Gemm", x, graph.reshape(weight, [0, -1]), *given, transB=1)
        even = (np.maximum(self._seen[name], reach) / LARGEST).astype(np.float32)
        if x not in self._rounded:
            evened = op("Mul", x, graph.constant(1 / even))
            self._rounded[x] = op("QuantizeLinear", evened, self._one, self._middle)
        largest = np.abs(graph.values[f"{name}.weight"] * even).max(axis=1)
        scale = graph.constant(np.maximum(largest / LARGEST, 1e-12))
        zero = graph.constant(np.zeros(len(largest)), np.int8)
        weight = op("Mul", weight, graph.constant(even.reshape(-1, BLOCK)))
        weight = graph.reshape(op("QuantizeLinear", weight, scale, zero, axis=0), [0, -1])
        weight = op("Transpose", weight, perm=[1, 0])
        given = [self._rounded[x], weight, self._one, scale, self._middle, zero, *given]
        return op("MatMulIntegerToFloat", *given)

    def _normalized(self, name: str, x: str, y: str) -> str:
        """Add the layer normalisation of x + y to the graph; return its output.

        ONNX Runtime would join "Add" and it to one operator, which takes four times as long.
        """
        given, epsilon = self._graph.both(name), self._config["layer_norm_eps"]
        return self._graph.op("LayerNormalization", self._graph.op("Sum", x, y), *given, epsilon=epsilon)

    def _of(self, name: str) -> Pair:
        return self._graph.values[f"{name}.weight"], self._graph.values[f"{name}.bias"]


def reach_of_norm(norm: Pair) -> FloatArray:
    """Return how far from 0 each output of a layer normalisation is expected to go; (k,)."""
    scale, shift = norm
    reach: FloatArray = np.maximum(np.abs(shift) + DEVIATIONS * np.abs(scale), 1e-6)
    return reach


def reach_of_linear(weight: FloatArray, bias: FloatArray, norm: Pair, *, gelu: bool) -> FloatArray:
    """Return how far from 0 each output of a linear layer is expected to go; (n,).

    weight, bias: (n, k) and (n,) of the layer. norm: the layer normalisation before it, whose outputs are
    taken to be independent. gelu: whether the outputs go through GELU.
    """
    scale, shift = norm
    middle = weight @ shift + bias
    deviation = DEVIATIONS * np.sqrt(np.square(weight * scale).sum(axis=1))
    highest = (middle if gelu else np.abs(middle)) + deviation
    reach: FloatArray = np.maximum(highest, LEAST_REACH if gelu else 1e-6)
    return reach


@torch.no_grad()
def largest_inputs(
    config: dict[str, Any], values: Tensors, texts: Sequence[Sequence[int]]
) -> dict[str, FloatArray]:
    """Return how far from 0 the columns of the input of each linear layer go; (k,) by the layer's name.

    config, values: of a BERT. texts: the token ids of each text.
    """
    net = BertModel(BertConfig(**config), add_pooling_layer=False).eval()
    net.load_state_dict({name: torch.from_numpy(values[name]) for name in net.state_dict()})
    seen: dict[str, FloatArray] = {}
    for name, module in net.named_modules():

        def note(_: nn.Module, given: tuple[torch.Tensor], name: str = name) -> None:
            seen[name] = np.maximum(seen.get(name, 0), given[0].abs().amax((0, 1)).numpy())

        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(note)
    for text in texts:
        net(input_ids=torch.tensor([text]))
    return seen


def network_of(folder: Path, *, int8: bool = True) -> bytes:
    """Return the ONNX file of the network in a folder. int8: its linear layers."""
    words = packaged_model(PACKAGED[E5]["folder"])
    is_encoder = (folder / "tokenizer.json").exists()
    reading = reading_of(folder if is_encoder else words, folder.name)
    graph, tokenizer = Graph(*([] if is_encoder else [words]), folder), reading.tokenizer()
    if is_encoder:
        prompted = (prompt + text for prompt, text in zip(reading.prompts, SAMPLE, strict=True))
        sample = [tokenizer.encode(text).ids for text in prompted]
    else:
        sample = [tokens_of_pairs(tokenizer, SAMPLE[0], [Piece(SAMPLE[1])]).ids.tolist()]
    kinds = len(graph.values["embeddings.token_type_embeddings.weight"])
    config = {**reading.config, "type_vocab_size": kinds}
    inputs = ["input_ids", "attention_mask", *([] if is_encoder else ["token_type_ids"])]
    bert = Bert(graph, config, largest_inputs(config, graph.values, sample) if int8 else None)
    states, rows = bert.states(*inputs)
    op, axis = graph.op, graph.constant([1], np.int64)
    if is_encoder:
        mask = op("Cast", inputs[1], to=TensorProto.FLOAT)
        share = op("Div", mask, op("ReduceSum", mask, axis, keepdims=1))
        weighted = op(
            "Mul", op("Gather", states, rows), op("Unsqueeze", share, graph.constant([2], np.int64))
        )
        return graph.model(inputs, (op("ReduceSum", weighted, axis, keepdims=0), "sentence_embedding"))
    first = op("Gather", states, op("Gather", rows, graph.constant(0, np.int64), axis=1))
    pooled = op("Tanh", op("Gemm", first, *graph.both("pooler.dense"), transB=1))
    return graph.model(inputs, (op("Gemm", pooled, *graph.both("classifier"), transB=1), "logits"))


def largest_sums() -> bytes:
    """Return an ONNX file of the largest sums of products of int8, which some processors cut off."""
    graph, shape = Graph(), (64, 64)
    x, weights = (
        graph.constant(np.full(shape, n), kind) for n, kind in ((255, np.uint8), (LARGEST, np.int8))
    )
    one, zero = graph.constant(1), graph.constant(0, np.uint8)
    return graph.model([], (graph.op("MatMulIntegerToFloat", x, weights, one, one, zero), "sums"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", help="a name in precise_rag/models, or a folder")
    parser.add_argument("--float32", action="store_true", help="linear layers in float32, not in int8")
    options = parser.parse_args()
    given = Path(options.model)
    folder = given if given.is_dir() else packaged_model(str(given))
    network = largest_sums() if given.name == _SUMS else network_of(folder, int8=not options.float32)
    if given.name == _SUMS:
        folder.write_bytes(network)
    elif (folder / "tokenizer.json").exists():
        (folder / NETWORK).write_bytes(network)
        print(hashlib.sha256(network).hexdigest())
    else:
        config, tensors = load_checkpoint(folder)
        config["network_sha256"] = network_checksum(network, config["weights_sha256"])
        save_checkpoint(folder, config, tensors, {NETWORK: network})


if __name__ == "__main__":
    main()
