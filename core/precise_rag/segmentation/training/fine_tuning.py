"""An encoder in training: made ready for it, and its vectors with their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from precise_rag.encoders.sentence_transformer import fast_precision

_GROUP = 32
"""Texts that go through the encoder together; of like length, so that little is padding."""

_WIDTH = 16
"""Widths are multiples of this: of tensors in every size, freed in every order, memory allocators make
so many odd pieces that after some hundred steps looking through them takes longer than the arithmetic."""


@contextmanager
def trainable(module: Any) -> Iterator[Any]:
    """A sentence-transformers model made ready: its token vectors frozen, its attention fast both ways.

    On a CPU the backward pass of fused attention takes twice the time of the plain one.
    """
    transformer = getattr(module[0], "auto_model", None)
    if transformer is None:
        yield module
        return
    attention = transformer.config._attn_implementation
    transformer.get_input_embeddings().requires_grad_(False)
    if module.device.type == "cpu":
        transformer.set_attn_implementation("eager")
    try:
        yield module
    finally:
        transformer.get_input_embeddings().requires_grad_(True)
        transformer.set_attn_implementation(attention)


def embed(module: Any, texts: Sequence[str]) -> Tensor:
    """(n, d) unit float32 vectors of `texts` in their order, on the module's device, with gradients.

    In bfloat16 where the hardware is fast at it, as the library's encoders are, and without
    dropout: in one or two passes over the text it costs more time than it saves error.
    """
    module.eval()
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    read = getattr(module, "preprocess", None) or module.tokenize
    padding = getattr(module.tokenizer, "pad_token_id", None) or 0
    parts = []
    with fast_precision(module.device.type):
        for first in range(0, len(order), _GROUP):
            tokens = read([texts[row] for row in order[first : first + _GROUP]])
            tokens = {
                name: _widened(value, padding if name == "input_ids" else 0).to(module.device)
                if isinstance(value, Tensor)
                else value
                for name, value in tokens.items()
            }
            parts.append(module(tokens)["sentence_embedding"].float())
    rows = torch.cat(parts)
    places = torch.empty(len(order), dtype=torch.long)
    places[torch.tensor(order)] = torch.arange(len(order))
    return torch.nn.functional.normalize(rows[places.to(rows.device)], dim=1)


def _widened(rows: Tensor, padding: int) -> Tensor:
    """Rows of tokens made as wide as a multiple of _WIDTH."""
    missing = -rows.shape[1] % _WIDTH if rows.ndim == 2 else 0
    return torch.nn.functional.pad(rows, (0, missing), value=padding) if missing else rows
