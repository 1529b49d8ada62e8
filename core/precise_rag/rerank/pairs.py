"""What the cascade's network reads, its sizes and its tensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag.checkpoints.expected import check_tensors
from precise_rag.checkpoints.quantized import check_scales
from precise_rag.checkpoints.saved import Tensors
from precise_rag.errors import ModelError
from precise_rag.tokens import readable_texts

QUERY_TOKENS = 64
CANDIDATE_TOKENS = 256
"""Tokens of a query and of a candidate that are read; later ones are cut off."""

BEFORE_TOKENS, AFTER_TOKENS = 24, 16
"""Tokens of the document around a candidate that are read, those next to it."""

N_SIDES = 3
"""What a token can belong to: the query, the candidate, or the text around the candidate."""

PARTS: Mapping[str, str] = {
    "attention.output.dense": "out",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "norm2",
}
"""BERT's names of a layer's parts, and a checkpoint's names of the same parts."""

_WIDTH, _HEADS, _INNER = 384, 12, 1536
"""Sizes of MiniLM."""
_WEIGHTS: Mapping[str, tuple[int, ...]] = {
    "query_key_value": (3 * _WIDTH, _WIDTH),
    "out": (_WIDTH, _WIDTH),
    "norm1": (_WIDTH,),
    "up": (_INNER, _WIDTH),
    "down": (_WIDTH, _INNER),
    "norm2": (_WIDTH,),
}
"""The weights of each part of a layer; its bias has their first axis."""


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes of the network. n_apart: how many of the n_layers read query and candidate apart."""

    n_layers: int = 6
    n_apart: int = 3
    width: int = _WIDTH
    heads: int = _HEADS
    inner: int = _INNER
    vocabulary: int = 30522
    positions: int = 512
    epsilon: float = 1e-12


class Piece(NamedTuple):
    """A text as the cascade's network reads it.

    above: the titles that are put before it, if any. before, after: the document's text around it.
    """

    text: str
    above: str = ""
    before: str = ""
    after: str = ""


class PieceTokens(NamedTuple):
    """The tokens of n pieces.

    rows: the token ids of each, with special tokens: what is above, before, the text itself, and after.
    around: (l,) for each, which tokens are the text around it.
    """

    rows: list[list[int]]
    around: list[npt.NDArray[np.bool_]]


def tokens_of_pieces(tokenizer: Any, pieces: Sequence[Piece]) -> PieceTokens:
    """Tokenize pieces; of long ones only the beginning. tokenizer: a `tokenizers.Tokenizer`."""
    texts = list(readable_texts([part for piece in pieces for part in piece]))
    begin, end = tokenizer.encode("").ids
    parts = [one.ids for one in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    rows, around = [], []
    for first in range(0, len(parts), len(Piece._fields)):
        text, above, before, after = parts[first : first + len(Piece._fields)]
        above = above[: CANDIDATE_TOKENS - 2]
        text = text[: CANDIDATE_TOKENS - 2 - len(above)]
        before, after = before[max(0, len(before) - BEFORE_TOKENS) :], after[:AFTER_TOKENS]
        rows.append([begin, *above, *before, *text, *after, end])
        is_around = np.zeros(len(rows[-1]), dtype=np.bool_)
        is_around[1 + len(above) :][: len(before)] = True
        is_around[len(rows[-1]) - 1 - len(after) : -1] = True
        around.append(is_around)
    return PieceTokens(rows, around)


def check_trained(folder: str | Path, tensors: Tensors, n_together: int) -> None:
    """Check the trained tensors of the network.

    folder: of the model. n_together: layers that read both texts.
    Raises ModelError if one is missing, unknown or of another shape.
    """
    layer = {
        **{f"{name}.weight": shape for name, shape in _WEIGHTS.items()},
        **{f"{name}.bias": shape[:1] for name, shape in _WEIGHTS.items()},
    }
    shapes = {
        "sides": (N_SIDES, _WIDTH),
        "across": (n_together, _HEADS),
        "head.weight": (1, 6 * _WIDTH),
        "head.bias": (1,),
        **{f"together.{n}.{name}": shape for n in range(n_together) for name, shape in layer.items()},
    }
    check_tensors(folder, tensors, shapes)
    if unknown := sorted(tensors.keys() - shapes.keys() - check_scales(tensors)):
        raise ModelError(f"{folder}: unknown tensors {unknown[:3]}; install or train the model again")
