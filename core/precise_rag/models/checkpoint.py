"""Saving and loading models: `config.json` and `model.safetensors` in one folder."""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from precise_rag.errors import ModelError

Tensors = dict[str, np.ndarray[Any, Any]]

_CONFIG, _WEIGHTS, _SUM = "config.json", "model.safetensors", "weights_sha256"


def save_checkpoint(folder: str | Path, config: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
    """Save a model.

    folder: where to write both files; created if missing.
    config: the model's settings; the sha256 of the weights is added to the file.
    tensors: the weights by name.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})
    (folder / _WEIGHTS).write_bytes(weights)
    settings = {**config, _SUM: hashlib.sha256(weights).hexdigest()}
    (folder / _CONFIG).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def load_checkpoint(folder: str | Path) -> tuple[dict[str, Any], Tensors]:
    """Load a saved model.

    Returns its config and its tensors by name.
    Raises ModelError if a file is missing or broken, or the checksum of the weights is wrong.
    """
    folder = Path(folder)
    try:
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
        weights = (folder / _WEIGHTS).read_bytes()
    except OSError as error:
        raise ModelError(f"{folder} contains no model: {error.strerror} ({error.filename})") from error
    except ValueError as error:
        raise ModelError(f"{folder / _CONFIG} is not valid JSON: {error}") from error
    found = hashlib.sha256(weights).hexdigest()
    if not isinstance(config, dict) or config.get(_SUM) != found:
        raise ModelError(
            f"{folder / _WEIGHTS} has sha256 {found}, but {_CONFIG} names another; "
            "install or train the model again"
        )
    try:
        return config, load(weights)
    except SafetensorError as error:
        raise ModelError(f"{folder / _WEIGHTS} is not a safetensors file: {error}") from error


def quantized(tensors: Mapping[str, Any], tables: Collection[str]) -> Tensors:
    """Make tensors smaller, for shipping: `tables` as int8, all other tensors as float16.

    tables: names of (n, d) tensors. Each gains a tensor "NAME_scale" (n, 1) that its rows are multiplied
    by to undo the quantization.
    """
    found: Tensors = {}
    for name, tensor in tensors.items():
        if name in tables:
            scale = np.maximum(np.abs(tensor).max(axis=1, keepdims=True) / 127, 2.0**-24).astype(np.float16)
            rows = np.round(tensor / scale.astype(np.float32))
            found |= {name: np.clip(rows, -127, 127).astype(np.int8), f"{name}_scale": scale}
        else:
            found[name] = tensor.astype(np.float16)
    return found


def dequantized(tensors: Tensors) -> Tensors:
    """Undo `quantized`. Returns float32 tensors, equal to the original ones up to rounding."""
    scales = {f"{name}_scale" for name, tensor in tensors.items() if tensor.dtype == np.int8}
    found = {name: tensor.astype(np.float32) for name, tensor in tensors.items() if name not in scales}
    for scale in scales:
        found[scale.removesuffix("_scale")] *= tensors[scale]
    return found
