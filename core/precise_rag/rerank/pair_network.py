"""The cascade's cross-encoder in torch, for training and GPUs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from precise_rag.encoders.devices import best_device
from precise_rag.encoders.local import MINILM, batches_by_length
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder, bfloat16_is_fast, on_device
from precise_rag.encoders.token_ids import read_ids
from precise_rag.rerank.pairs import (
    N_SIDES,
    PARTS,
    QUERY_TOKENS,
    Piece,
    PieceTokens,
    TransformerConfig,
    tokens_of_pieces,
)
from precise_rag.tokens import readable_texts
from precise_rag.types import FloatArray, IntArray

_BATCH_TOKENS = 4_096


class TransformerLayer(nn.Module):
    """BERT's layer: self-attention and a feed-forward network, each added and normalised."""

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
        """Return (b, l, width) states from states of the same shape.

        mask: added to the attention's logits; broadcasts to (b, heads, l, l).
        """
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


class Pairs(NamedTuple):
    """The states of b queries, each with a candidate, read apart.

    query, candidate: (b, q, width) and (b, l, width). in_query, in_candidate: (b, q) and (b, l) masks, false
    at padding. around: (b, l), true at tokens of the text around a candidate.
    """

    query: Tensor
    in_query: Tensor
    candidate: Tensor
    in_candidate: Tensor
    around: Tensor


class PairNetwork(nn.Module):
    """Cross-encoder: one logit for a query and a candidate, which is read in the text around it.

    Lower layers, those of MiniLM, read query and candidate apart, and are not trained; upper ones, which
    start as MiniLM's, read both together. Before training, attention
    from one text to the other is nearly shut, and the logit is a multiple of MiniLM's cosine of both.
    """

    ACROSS = -4.0
    """Added to the attention's logits from one text to the other, before training."""

    COSINE = 12.0
    """Weight of the cosine before training."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.positions, config.width)
        self.norm = nn.LayerNorm(config.width, eps=config.epsilon)
        self.apart = nn.ModuleList(TransformerLayer(config) for _ in range(config.n_apart))
        self.together = nn.ModuleList(
            TransformerLayer(config) for _ in range(config.n_layers - config.n_apart)
        )
        self.sides = nn.Parameter(torch.zeros(N_SIDES, config.width))
        n_together = config.n_layers - config.n_apart
        self.across = nn.Parameter(torch.full((n_together, config.heads), self.ACROSS))
        self.head = nn.Linear(6 * config.width, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.constant_(self.head.weight[:, -config.width :], self.COSINE)
        nn.init.constant_(self.head.bias, -0.5 * self.COSINE)

    def encode(self, ids: Tensor, is_token: Tensor) -> Tensor:
        """Return (b, l, width) states of texts, each by itself.

        ids: (b, l) token ids. is_token: (b, l), false at padding.
        """
        places = torch.arange(ids.shape[1], device=ids.device)
        x: Tensor = self.norm(self.words(ids) + self.places(places))
        mask = _mask(is_token)
        for layer in self.apart:
            x = layer(x, mask)
        return x

    def score(self, pairs: Pairs) -> Tensor:
        """Return (b,) logits."""
        query, candidate = self._read_together(pairs)
        a, b = _mean(query, pairs.in_query), _mean(candidate, pairs.in_candidate & ~pairs.around)
        unit = F.normalize(a, dim=-1) * F.normalize(b, dim=-1)
        columns = [query[:, 0].float(), candidate[:, 0].float(), a, b, (a - b).abs(), unit]
        return F.linear(torch.cat(columns, dim=-1), self.head.weight, self.head.bias)[:, 0]

    def _read_together(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """The states of queries and of candidates; their shapes stay."""
        length = pairs.query.shape[1]
        side = torch.where(pairs.around[..., None], self.sides[2], self.sides[1])
        x = torch.cat([pairs.query + self.sides[0], pairs.candidate + side], dim=1)
        mask = _mask(torch.cat([pairs.in_query, pairs.in_candidate], dim=1))
        is_query = torch.arange(x.shape[1], device=x.device) < length
        other = (is_query[:, None] != is_query).float()
        for layer, across in zip(self.together, self.across, strict=True):
            x = layer(x, mask + across[:, None, None] * other)
        return x[:, :length], x[:, length:]


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return (n, width) token ids, 0 at padding, and the (n, width) mask, false at padding.

    The width is a multiple of 16: tensors of many different sizes fragment the heap and slow training.
    """
    width = -(-max(map(len, rows)) // 16) * 16
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(width) < lengths[:, None]


def minilm() -> SentenceTransformerEncoder:
    """Load the packaged all-MiniLM-L6-v2 into torch."""
    return SentenceTransformerEncoder(MINILM, device="cpu")


def copy_layers(network: PairNetwork, encoder: SentenceTransformerEncoder) -> None:
    """Copy the embeddings and layers of `encoder`, which is `minilm()`, into a network."""
    config, source = network.config, encoder.module[0].auto_model.state_dict()
    tensors = network.state_dict()
    tensors["words.weight"] = source["embeddings.word_embeddings.weight"]
    kind = source["embeddings.token_type_embeddings.weight"][0]
    tensors["places.weight"] = source["embeddings.position_embeddings.weight"] + kind
    for part in ("weight", "bias"):
        tensors[f"norm.{part}"] = source[f"embeddings.LayerNorm.{part}"]
        for layer in range(config.n_layers):
            apart = layer < config.n_apart
            ours = f"apart.{layer}" if apart else f"together.{layer - config.n_apart}"
            theirs = f"encoder.layer.{layer}"
            three = [source[f"{theirs}.attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            tensors[f"{ours}.query_key_value.{part}"] = torch.cat(three)
            for its, name in PARTS.items():
                tensors[f"{ours}.{name}.{part}"] = source[f"{theirs}.{its}.{part}"]
    network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})


class PairScorer:
    """Scores pieces of text against a query with a trained network.

    config: sizes of the network. trained: its tensors that differ from MiniLM, by name.
    device: such as "cpu"; default: CUDA if there is one.
    """

    def __init__(
        self, config: TransformerConfig, trained: Mapping[str, FloatArray], device: str | None = None
    ) -> None:
        encoder, self._network = minilm(), PairNetwork(config)
        copy_layers(self._network, encoder)
        state = {name: torch.from_numpy(tensor) for name, tensor in trained.items()}
        self._network.load_state_dict({**self._network.state_dict(), **state})
        self._device = torch.device(best_device(device))
        self._network.eval().to(self._device)
        if bfloat16_is_fast(self._device.type):
            self._network.bfloat16()
            self._network.head.float()
        self._tokenizer = encoder.tokenizer

    def logits(self, query: str, pieces: Sequence[Piece]) -> FloatArray:
        """Return (n,) logits, one per piece; of long queries and texts only the beginning is read."""
        [query] = readable_texts([query])
        logits = np.zeros(len(pieces), dtype=np.float32)
        if not pieces:
            return logits
        tokens = tokens_of_pieces(self._tokenizer, pieces)
        batches = list(batches_by_length(np.array([len(row) for row in tokens.rows]), _BATCH_TOKENS))
        with torch.inference_mode():
            of_query = read_ids(self._tokenizer, [query], 1).cut(QUERY_TOKENS).ids
            query_ids, in_query = self._padded([of_query.tolist()])
            states = self._network.encode(query_ids, in_query)
            scores = [self._scores(states, in_query, tokens, rows) for rows in batches]
            logits[np.concatenate(batches)] = torch.cat(scores).float().cpu().numpy()
        return logits

    def _scores(self, query: Tensor, in_query: Tensor, tokens: PieceTokens, rows: IntArray) -> Tensor:
        """The logits of some pieces. query: (1, q, width) states."""
        ids, is_token = self._padded([tokens.rows[row] for row in rows])
        around = np.zeros(is_token.shape, dtype=np.bool_)
        for place, row in enumerate(rows):
            around[place, : len(tokens.around[row])] = tokens.around[row]
        queries = query.expand(len(rows), -1, -1), in_query.expand(len(rows), -1)
        is_around = on_device(torch.from_numpy(around), self._device)
        return self._network.score(Pairs(*queries, self._network.encode(ids, is_token), is_token, is_around))

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        ids, is_token = padded(rows)
        return on_device(ids, self._device), on_device(is_token, self._device)


def _mask(is_token: Tensor) -> Tensor:
    return (~is_token)[:, None, None, :] * -1e4


def _mean(x: Tensor, is_token: Tensor) -> Tensor:
    weight = is_token[..., None].float()
    return (x.float() * weight).sum(1) / weight.sum(1)
