"""Segmentation models by name or folder."""

from pathlib import Path
from typing import Any

from precise_rag.checkpoints.saved import check_config, load_config, packaged_model
from precise_rag.checks import as_path
from precise_rag.errors import ModelError
from precise_rag.segmentation.boundaries import BoundaryModel
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.small import SmallModel

PACKAGED = {name: f"segmentation-{name}" for name in ("small", "sage", "sage-minilm")}
"""Folders of the packaged models, by name."""


def load_model(
    name: str | Path, *, device: str | None = None, encoder: Any = None
) -> tuple[BoundaryModel, dict[str, Any]]:
    """Load a model, and the segmenter options that it was made for.

    name: of a packaged model, or a folder.
    device: where its networks run; default: CUDA if there is one. encoder: as in `SageModel.load`.
    Raises ModelError if the model does not exist, or its files are damaged or foreign.
    """
    folder = model_folder(name)
    config = load_config(folder)
    check_config(folder, config, {"family": str, "options": dict})
    family = config["family"]
    if family not in ("small", "sage"):
        raise ModelError(f"{folder} must contain a model of the family small or sage, got {family!r}")
    if family == "small":
        return SmallModel.load(folder, device=device), dict(config["options"])
    return SageModel.load(folder, encoder=encoder, device=device), dict(config["options"])


def model_folder(name: str | Path) -> Path:
    """Return the folder of a model by name or folder. Raises ModelError if it does not exist."""
    folder = as_path("name", name)
    if str(name) in PACKAGED:
        folder = packaged_model(PACKAGED[str(name)])
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"there is no segmentation model {str(name)!r}; pass {', '.join(PACKAGED)}, or a folder that "
            "`precise train` wrote"
        )
    return folder
