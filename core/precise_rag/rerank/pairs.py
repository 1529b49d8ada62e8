"""What the cascade's cross-encoder reads, and its sizes."""

from dataclasses import dataclass

QUERY_TOKENS = 64
CANDIDATE_TOKENS = 256
"""Tokens of a query and of a candidate that are read; later ones are cut off."""


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes of the network. n_apart: how many of the n_layers read query and candidate apart."""

    n_layers: int = 6
    n_apart: int = 3
    width: int = 384
    heads: int = 12
    inner: int = 1536
    vocabulary: int = 30522
    positions: int = 512
    epsilon: float = 1e-12
