"""Fine-tuning of a sentence-transformers encoder."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from precise_rag.encoders.sentence_transformer import fast_precision

_GROUP = 32
"""Texts that are encoded together; they have similar lengths, so that there is little padding."""
_WIDTH = 16
"""Tensor widths are multiples of this: tensors of many sizes fragment the heap and slow training."""


@contextmanager
def trainable(module: Any) -> Iterator[Any]:
    """Prepare a sentence-transformers model for training, and undo it afterwards.

    Its token vectors are frozen. On a CPU, attention is not fused, because that makes its backward pass
    slower.
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
    """Return (n, d) float32 unit vectors of `texts`, with gradients, on the module's device.

    They follow the model's prompt, and are computed in bfloat16 if the hardware is fast at
    it, and without dropout.
    """
    module.eval()
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    read = getattr(module, "preprocess", None) or module.tokenize
    padding = getattr(module.tokenizer, "pad_token_id", None) or 0
    prompt, parts = module.prompts["document"], []
    with fast_precision(module.device.type):
        for first in range(0, len(order), _GROUP):
            tokens = read([prompt + texts[row] for row in order[first : first + _GROUP]])
            for name, value in tokens.items():
                if isinstance(value, Tensor):
                    tokens[name] = _widened(value, padding * (name == "input_ids")).to(module.device)
            parts.append(module(tokens)["sentence_embedding"].float())
    rows = torch.cat(parts)
    places = torch.tensor(order).argsort()
    return torch.nn.functional.normalize(rows[places.to(rows.device)], dim=1)


def _widened(rows: Tensor, padding: int) -> Tensor:
    """Pad rows of tokens to a multiple of _WIDTH."""
    missing = -rows.shape[1] % _WIDTH if rows.ndim == 2 else 0
    return torch.nn.functional.pad(rows, (0, missing), value=padding) if missing else rows
