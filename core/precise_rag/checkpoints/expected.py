"""What the settings and tensors of a saved model must be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from precise_rag.checkpoints.saved import Tensors, refuse


def check_config(folder: str | Path, config: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    """Raise ModelError that names the folder for the first setting that is missing or of another kind."""
    for name, kind in kinds.items():
        if type(value := config.get(name)) is not kind:
            refuse(f"{folder}:", f"{name} in config.json must be {kind.__name__}, got {value!r:.60}")


def check_tensors(folder: str | Path, tensors: Tensors, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ModelError that names the folder for the first tensor that is missing or has another shape."""
    for name, shape in shapes.items():
        actual = tensors[name].shape if name in tensors else None
        if actual != shape:
            refuse(f"{folder}:", f"the tensor {name!r} must have shape {shape}, got {actual}")
