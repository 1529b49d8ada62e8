"""Tensors of a model made smaller: tables of int8 numbers with scales, and float16."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from precise_rag.checkpoints.saved import Tensors
from precise_rag.errors import ModelError


def quantized(tensors: Mapping[str, Any], tables: Collection[str], block: int | None = None) -> Tensors:
    """Make tensors smaller, for shipping: `tables` as int8, all other tensors as float16.

    tables: names of (n, d) tensors. Each gains a tensor "NAME_scale" (n, d / block) that its blocks are
    multiplied by to undo the quantization.
    block: columns that share a scale, a divisor of d; default: d, the whole row.
    """
    smaller: Tensors = {}
    for name, tensor in tensors.items():
        if name in tables:
            n, d = tensor.shape
            blocks = tensor.reshape(n, -1, block or d)
            scale = np.maximum(np.abs(blocks).max(axis=2) / 127, 2.0**-24).astype(np.float16)
            rows = np.round(blocks / scale[..., None].astype(np.float32)).reshape(n, d)
            smaller |= {name: np.clip(rows, -127, 127).astype(np.int8), f"{name}_scale": scale}
        else:
            smaller[name] = tensor.astype(np.float16)
    return smaller


def dequantized(tensors: Tensors) -> Tensors:
    """Undo `quantized`. Returns float32 tensors, equal to the original ones up to rounding.

    Raises ModelError if a table is not (n, d), or has no scales for each row in equal blocks of its columns.
    """
    restored = {name: tensor.astype(np.float32, copy=False) for name, tensor in tensors.items()}
    for name in [name for name, tensor in tensors.items() if tensor.dtype == np.int8]:
        shape, scale = tensors[name].shape, tensors.get(f"{name}_scale")
        if (
            scale is None
            or (len(shape), scale.ndim) != (2, 2)
            or scale.shape[0] != shape[0]
            or scale.shape[1] == 0
            or shape[1] % scale.shape[1]
        ):
            raise ModelError(
                f"the model needs a tensor '{name}_scale' with one row per row of its table, whose columns "
                "are in as many equal blocks as that row has scales"
            )
        blocks = restored[name].reshape(*scale.shape, -1)
        blocks *= scale[..., None]
        del restored[f"{name}_scale"]
    return restored
