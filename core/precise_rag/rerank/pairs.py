"""What the networks that read a query and a text together read, their sizes and their tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from precise_rag.checkpoints.checks import check_tensors
from precise_rag.checkpoints.quantized import check_scales
from precise_rag.checkpoints.saved import Tensors
from precise_rag.errors import ModelError

QUERY_TOKENS = 64
CANDIDATE_TOKENS = 256
"""Tokens of a query and of a candidate that are read; later ones are cut off."""

WIDTH, _HEADS, _INNER = 384, 12, 1536
"""Sizes of MiniLM."""
_WEIGHTS: Mapping[str, tuple[int, ...]] = {
    "query_key_value": (3 * WIDTH, WIDTH),
    "out": (WIDTH, WIDTH),
    "norm1": (WIDTH,),
    "up": (_INNER, WIDTH),
    "down": (WIDTH, _INNER),
    "norm2": (WIDTH,),
}
"""The weights of each part of a layer; its bias has their first axis."""


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes of the network. n_apart: how many of the n_layers read query and candidate apart."""

    n_layers: int = 6
    n_apart: int = 3
    width: int = WIDTH
    heads: int = _HEADS
    inner: int = _INNER
    vocabulary: int = 30522
    positions: int = 512
    epsilon: float = 1e-12


def check_trained(folder: str | Path, tensors: Tensors, n_together: int, head: tuple[int, int]) -> None:
    """Check the trained tensors of a network.

    folder: of the model. n_together: layers that read both texts. head: shape of the weights of its head.
    Raises ModelError if one is missing, unknown or of another shape.
    """
    layer = {
        **{f"{name}.weight": shape for name, shape in _WEIGHTS.items()},
        **{f"{name}.bias": shape[:1] for name, shape in _WEIGHTS.items()},
    }
    shapes = {
        "sides": (2, WIDTH),
        "across": (n_together, _HEADS),
        "head.weight": head,
        "head.bias": head[:1],
        **{f"together.{n}.{name}": shape for n in range(n_together) for name, shape in layer.items()},
    }
    check_tensors(folder, tensors, shapes)
    if unknown := sorted(tensors.keys() - shapes.keys() - check_scales(tensors)):
        raise ModelError(f"{folder}: unknown tensors {unknown[:3]}; install or train the model again")
