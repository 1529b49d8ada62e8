"""The encoder in torch: MiniLM whose upper layers are trained, and its files."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from precise_rag.checkpoints.quantized import dequantized, quantized
from precise_rag.checkpoints.saved import load_checkpoint, save_checkpoint
from precise_rag.encoders.bert_files import float32_folder
from precise_rag.encoders.packaged import packaged_minilm
from precise_rag.encoders.sentence_transformer import fast_precision
from precise_rag.rerank.pair_network import (
    PairNetwork,
    TransformerConfig,
    minilm,
    minilm_pair_network,
    padded,
)

CLS, SEP = 101, 102
"""Token ids that begin and end every text."""

FORWARD_TOKENS = {"cpu": 2_048, "cuda": 65_536}
"""Tokens, with padding, that the layers read at a time: few enough that the states fit."""

_FILES = (
    "1_Pooling",
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
)
_NAMES = {
    "out": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm2": "output.LayerNorm",
}


class SentenceNetwork(nn.Module):
    """MiniLM as an encoder whose embeddings and lower three layers stay as they are.

    They are the ones that the cross-encoder of the cascade begins with, so both can share them.
    start: folder of `save_start`; default: MiniLM as it is installed.
    trunk: (attribute) the whole network. upper: (attribute) the layers of it that are trained.
    """

    def __init__(self, start: Path | None = None) -> None:
        super().__init__()
        if start is None:
            self.trunk = minilm_pair_network(TransformerConfig(), minilm())
        else:
            self.trunk = PairNetwork(TransformerConfig())
            tensors = dequantized(load_checkpoint(start)[1])
            self.trunk.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in tensors.items()})
        self.trunk.requires_grad_(False)
        self.upper = self.trunk.together.requires_grad_(True)

    def vectors(self, rows: Sequence[Sequence[int]], tokens_at_once: int | None = None) -> Tensor:
        """Return (n, width) vectors of unit length. rows: token ids of n texts, without special tokens."""
        tokens_at_once = tokens_at_once or FORWARD_TOKENS[self.trunk.places.weight.device.type]
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
        found, first = [], 0
        while first < len(order):
            size = 1
            while (
                first + size < len(order) and (size + 1) * _width(rows[order[first + size]]) <= tokens_at_once
            ):
                size += 1
            found.append(self._pooled([rows[row] for row in order[first : first + size]]))
            first += size
        back = torch.argsort(torch.tensor(order)).to(found[0].device)
        return torch.cat(found)[back]

    def _pooled(self, rows: Sequence[Sequence[int]]) -> Tensor:
        ids, is_token = padded([[CLS, *row, SEP] for row in rows])
        device = self.trunk.places.weight.device
        ids, is_token = ids.to(device, non_blocking=True), is_token.to(device, non_blocking=True)
        with fast_precision(device.type):
            with torch.no_grad():
                x = self.trunk.encode(ids, is_token)
            mask = (~is_token)[:, None, None, :] * -1e4
            for layer in self.upper:
                x = layer(x, mask)
        weight = is_token[..., None].float()
        return F.normalize((x.float() * weight).sum(1) / weight.sum(1), dim=-1)


def _width(row: Sequence[int]) -> int:
    return -(-(len(row) + 2) // 16) * 16


def save_start(folder: Path) -> None:
    """Write MiniLM's weights, their matrices as int8, for a machine where it is not installed."""
    network = minilm_pair_network(TransformerConfig(), minilm())
    tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    save_checkpoint(
        folder, {"kind": "start"}, quantized(tensors, [n for n, t in tensors.items() if t.ndim == 2])
    )


def save_encoder(folder: Path, upper: dict[str, Tensor], old: float = 0.0) -> None:
    """Write a folder that `load_encoder` reads.

    upper: tensors of `SentenceNetwork.upper`. old: share of MiniLM's weights in the mean with them.
    """
    source = packaged_minilm()
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        if (source / name).is_dir():
            shutil.copytree(source / name, folder / name, dirs_exist_ok=True)
        elif (source / name).exists():
            shutil.copy(source / name, folder / name)
    with float32_folder(source) as readable:
        tensors = load_file(readable / "model.safetensors")
    for name, tensor in _by_name(upper).items():
        tensors[name] = (old * tensors[name].float() + (1.0 - old) * tensor.float()).contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _by_name(upper: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors by the names of `transformers`."""
    named = {}
    for name, tensor in upper.items():
        number, part, kind = name.split(".")
        layer = f"encoder.layer.{TransformerConfig().n_apart + int(number)}"
        if part == "query_key_value":
            for which, piece in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                named[f"{layer}.attention.self.{which}.{kind}"] = piece
        else:
            named[f"{layer}.{_NAMES[part]}.{kind}"] = tensor
    return named
