"""all-MiniLM-L6-v2 as it ships with precise-rag: a folder of sentence-transformers, its matrices in int8."""

import hashlib
from functools import cache
from pathlib import Path

from precise_rag.checkpoints.saved import open_model_file
from precise_rag.errors import ModelError
from precise_rag.models.packaged import SHIPPED, packaged_model

MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = frozenset(
    {
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        SHIPPED["encoder-minilm"]["model.safetensors"],
    }
)
"""Checksums of model.safetensors: in sentence-transformers/all-MiniLM-L6-v2, and in the package."""


@cache
def packaged_minilm() -> Path:
    """Return the folder of the packaged model. Raises ModelError if the checksum of a file is wrong."""
    folder = packaged_model("encoder-minilm")
    for name, sha256 in SHIPPED[folder.name].items():
        if file_sha256(folder / name) != sha256:
            raise ModelError(
                f"{folder / name} is not the file that this version of precise-rag ships; run: "
                "pip install --force-reinstall --no-deps precise-rag"
            )
    return folder


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal. Raises ModelError if it cannot be read."""
    with open_model_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
