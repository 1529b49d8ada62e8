"""all-MiniLM-L6-v2 as it ships with precise-rag: a folder of sentence-transformers, its matrices in int8."""

from functools import cache
from pathlib import Path

from precise_rag.checkpoints.saved import file_sha256, packaged_model
from precise_rag.errors import ModelError

MINILM = "all-MiniLM-L6-v2"
_PACKAGED_SHA256 = "237c03ce4e69cc05a0216fba404fec9e305997cd8cb2dd2ab479eb3924db2256"
MINILM_SHA256 = frozenset(
    {"53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", _PACKAGED_SHA256}
)
"""Checksums of model.safetensors: in sentence-transformers/all-MiniLM-L6-v2, and in the package."""


@cache
def packaged_minilm() -> Path:
    """Return the folder of the packaged model. Raises ModelError if the checksum of its weights is wrong."""
    folder = packaged_model("encoder-minilm")
    if file_sha256(folder / "model.safetensors") != _PACKAGED_SHA256:
        raise ModelError(
            f"{folder / 'model.safetensors'} is not the file that this version of precise-rag ships; run: "
            "pip install --force-reinstall --no-deps precise-rag"
        )
    return folder
