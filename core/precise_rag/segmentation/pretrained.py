"""Models by name or folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from precise_rag.errors import ModelError
from precise_rag.models.packaged import packaged_model
from precise_rag.segmentation.boundaries import BoundaryModel
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.small import SmallModel

PACKAGED = {"small": "segmentation-small", "sage-minilm": "segmentation-sage-minilm"}
"""The models in the wheel, by name."""


def load_model(
    name: str | Path, *, device: str | None = None, encoder: Any = None
) -> tuple[BoundaryModel, dict[str, Any]]:
    """The model, and the options it was made to be used with.

    Raises ModelError where there is no such model, or its files are damaged or foreign.
    """
    folder = Path(name)
    if str(name) in PACKAGED:
        folder = packaged_model(PACKAGED[str(name)])
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"no segmentation model {str(name)!r}: packaged are {', '.join(PACKAGED)}; "
            "else give a folder that `precise train` wrote"
        )
    family = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("family")
    if family == "small":
        model = SmallModel.load(folder)
        return model, dict(model.config["options"])
    if family == "sage":
        sage = SageModel.load(folder, encoder=encoder, device=device)
        return sage, dict(sage.config["options"])
    raise ModelError(f"{folder} holds a model of the family {family!r}; expected small or sage")
