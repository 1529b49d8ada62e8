"""What the settings and tensors of a saved model must be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from precise_rag.checkpoints.saved import Tensors
from precise_rag.errors import ModelError


def check_config(folder: str | Path, config: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    """Raise ModelError that names the folder for the first setting that is missing or of another kind."""
    for name, kind in kinds.items():
        if type(config.get(name)) is not kind:
            raise ModelError(
                f"{folder}: {name} in config.json must be {kind.__name__}, got {config.get(name)!r:.60}; "
                "install or train the model again"
            )


def check_tensors(folder: str | Path, tensors: Tensors, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ModelError that names the folder for the first tensor that is missing or has another shape."""
    for name, shape in shapes.items():
        actual = tensors[name].shape if name in tensors else None
        if actual != shape:
            raise ModelError(
                f"{folder}: the tensor {name!r} must have shape {shape}, got {actual}; "
                "install or train the model again"
            )
