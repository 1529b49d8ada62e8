"""The network of the small cross-encoder: MiniLM, with question and candidate apart below and together above.

The words and lower layers are the official all-MiniLM-L6-v2, never trained, and read a text by itself;
the upper ones start from it, are trained, and read both texts at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from precise_rag.encoders.packaged import MINILM
from precise_rag.encoders.sentence_transformer import (
    SentenceTransformerEncoder,
    batches_by_length,
    bfloat16_is_fast,
)
from precise_rag.types import FloatArray

QUESTION_TOKENS = 64
CANDIDATE_TOKENS = 256
_BATCH_TOKENS = 4_096


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes; `n_apart` of the `n_layers` read question and candidate apart."""

    n_layers: int = 6
    n_apart: int = 3
    width: int = 384
    heads: int = 12
    inner: int = 1536
    vocabulary: int = 30522
    positions: int = 512
    epsilon: float = 1e-12


class Layer(nn.Module):
    """Self-attention and a two-layer network, each added to its input and normalised (BERT's order)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.width = config.heads, config.width
        self.query_key_value = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.norm1 = nn.LayerNorm(config.width, eps=config.epsilon)
        self.up = nn.Linear(config.width, config.inner)
        self.down = nn.Linear(config.inner, config.width)
        self.norm2 = nn.LayerNorm(config.width, eps=config.epsilon)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(b, l, width) from the same; mask, added to the attention's logits, fits (b, heads, l, l)."""
        b, length, _ = x.shape
        split = self.query_key_value(x).view(b, length, 3, self.heads, self.width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        if self.training:  # the fused attention's gradient is several times slower on a CPU
            weights = query @ key.transpose(-1, -2) * (self.width // self.heads) ** -0.5 + mask
            attended = torch.softmax(weights, dim=-1).to(value.dtype) @ value
        else:
            attended = F.scaled_dot_product_attention(query, key, value, mask.to(query.dtype))
        x = self.norm1(x + self.out(attended.transpose(1, 2).reshape(b, length, self.width)))
        out: Tensor = self.norm2(x + self.down(F.gelu(self.up(x))))
        return out


class PairNetwork(nn.Module):
    """Logits of pairs of texts.

    The score begins as MiniLM's cosine of the two texts' mean token vectors; training adds to it what
    the layers that see both texts find.
    """

    COSINE = 12.0
    """What the cosine counts before training."""

    ACROSS = -4.0
    """What is added, before training, to the logits of attention from one text to the other."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.positions, config.width)
        self.norm = nn.LayerNorm(config.width, eps=config.epsilon)
        self.apart = nn.ModuleList(Layer(config) for _ in range(config.n_apart))
        self.together = nn.ModuleList(Layer(config) for _ in range(config.n_layers - config.n_apart))
        self.sides = nn.Parameter(torch.zeros(2, config.width))
        n_together = config.n_layers - config.n_apart
        self.across = nn.Parameter(torch.full((n_together, config.heads), self.ACROSS))
        self.head = nn.Linear(6 * config.width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.constant_(self.head.weight[:, -config.width :], self.COSINE)
        nn.init.constant_(self.head.bias, -0.5 * self.COSINE)

    def read(self, ids: Tensor, there: Tensor) -> Tensor:
        """(b, l, width) states of texts by themselves; ids (b, l), there (b, l) false at padding."""
        places = torch.arange(ids.shape[1], device=ids.device)
        x: Tensor = self.norm(self.words(ids) + self.places(places))
        mask = _mask(there)
        for layer in self.apart:
            x = layer(x, mask)
        return x

    def score(self, question: Tensor, asked: Tensor, candidate: Tensor, there: Tensor) -> Tensor:
        """(b,) logits from the states of both texts, with where they are no padding."""
        n_asked = question.shape[1]
        x = torch.cat([question + self.sides[0], candidate + self.sides[1]], dim=1)
        mask = _mask(torch.cat([asked, there], dim=1))
        side = torch.arange(x.shape[1], device=x.device) < n_asked
        other = (side[:, None] != side).float()
        for layer, across in zip(self.together, self.across, strict=True):
            x = layer(x, mask + across[:, None, None] * other)
        first, second = x[:, :n_asked], x[:, n_asked:]
        a, b = _mean(first, asked), _mean(second, there)
        unit = F.normalize(a, dim=-1) * F.normalize(b, dim=-1)
        seen = torch.cat([first[:, 0].float(), second[:, 0].float(), a, b, (a - b).abs(), unit], dim=-1)
        return F.linear(seen, self.head.weight, self.head.bias)[:, 0]


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """(n, width) token ids, 0 after the end, and where they are tokens.

    The width is a multiple of 16: tensors of ever new sizes leave the heap in pieces, and a step then
    takes several times as long after some hundred.
    """
    width = -(-max(map(len, rows)) // 16) * 16
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for row, found in enumerate(rows):
        ids[row, : len(found)] = torch.tensor(found)
    lengths = torch.tensor([len(found) for found in rows])
    return ids, torch.arange(width) < lengths[:, None]


def token_ids(tokenizer: Tokenizer, texts: Sequence[str], limit: int) -> list[list[int]]:
    """Token ids of each text, cut to `limit` with the last one kept, which ends a text."""
    found = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
    return [row if len(row) <= limit else [*row[: limit - 1], row[-1]] for row in found]


def minilm() -> SentenceTransformerEncoder:
    """The model that the network begins as, from the extra "offline" or as sentence-transformers finds it."""
    return SentenceTransformerEncoder(MINILM, device="cpu")


def minilm_pair_network(config: TransformerConfig, encoder: SentenceTransformerEncoder) -> PairNetwork:
    """A cross-encoder whose every layer is that of `minilm()`, before training."""
    found = encoder.module[0].auto_model.state_dict()
    network = PairNetwork(config)
    tensors = network.state_dict()
    tensors["words.weight"] = found["embeddings.word_embeddings.weight"]
    kind = found["embeddings.token_type_embeddings.weight"][0]
    tensors["places.weight"] = found["embeddings.position_embeddings.weight"] + kind
    for part in ("weight", "bias"):
        tensors[f"norm.{part}"] = found[f"embeddings.LayerNorm.{part}"]
        for layer in range(config.n_layers):
            apart = layer < config.n_apart
            ours = f"apart.{layer}" if apart else f"together.{layer - config.n_apart}"
            theirs = f"encoder.layer.{layer}"
            three = [found[f"{theirs}.attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            tensors[f"{ours}.query_key_value.{part}"] = torch.cat(three)
            for name, its in _NAMES.items():
                tensors[f"{ours}.{name}.{part}"] = found[f"{theirs}.{its}.{part}"]
    network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return network


class PairReader:
    """A trained network with its tokenizer; `trained`: what differs from MiniLM, by name.

    device: by default CUDA where there is one.
    """

    def __init__(
        self, config: TransformerConfig, trained: Mapping[str, FloatArray], device: str | None = None
    ) -> None:
        encoder = minilm()
        network = minilm_pair_network(config, encoder)
        state = {name: torch.from_numpy(tensor) for name, tensor in trained.items()}
        network.load_state_dict({**network.state_dict(), **state})
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._network = network.eval().to(self._device)
        if bfloat16_is_fast(self._device.type):
            self._network.bfloat16()
            self._network.head.float()
        self._tokenizer = encoder.tokenizer

    def logits(self, query: str, texts: Sequence[str]) -> FloatArray:
        """(n,) one per text; the query is read up to its 64th token, a text up to its 256th."""
        logits = np.zeros(len(texts), dtype=np.float32)
        ids = token_ids(self._tokenizer, texts, CANDIDATE_TOKENS)
        with torch.inference_mode():
            asked, is_asked = self._padded(token_ids(self._tokenizer, [query], QUESTION_TOKENS))
            question = self._network.read(asked, is_asked)
            for rows in batches_by_length(np.array([len(row) for row in ids]), _BATCH_TOKENS):
                shown, is_shown = self._padded([ids[row] for row in rows])
                both = question.expand(len(rows), -1, -1), is_asked.expand(len(rows), -1)
                found = self._network.score(*both, self._network.read(shown, is_shown), is_shown)
                logits[rows] = found.float().cpu().numpy()
        return logits

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        ids, there = padded(rows)
        return ids.to(self._device), there.to(self._device)


_NAMES = {
    "out": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm2": "output.LayerNorm",
}


def _mask(there: Tensor) -> Tensor:
    return (~there)[:, None, None, :] * -1e4


def _mean(x: Tensor, there: Tensor) -> Tensor:
    weight = there[..., None].float()
    return (x.float() * weight).sum(1) / weight.sum(1)
