"""Models of the Hugging Face hub: their folders in the local cache, and whether the hub can be reached."""

from pathlib import Path

from precise_rag.errors import ModelError

_TIMEOUT = 10.0
_FILES = ["*.json", "model.safetensors"]


def hub_folder(name: str, *, download: bool) -> Path | None:
    """Return the folder of a model in the local cache of the hub, or None if it is not there.

    name: on the hub; without an owner it is one of sentence-transformers.
    download: fetch what is missing. Then ModelError is raised if the hub does not return it.
    """
    import huggingface_hub as hub

    full = _full(name)
    try:
        return Path(hub.snapshot_download(full, allow_patterns=_FILES, local_files_only=True))
    except (OSError, ValueError):  # not in the cache, or not a name
        if not download:
            return None
    check_reachable(name)
    try:
        return Path(hub.snapshot_download(full, allow_patterns=_FILES))
    except (OSError, ValueError) as error:
        raise ModelError(f"encoder {name!r} cannot be loaded: {error}") from error


def check_reachable(name: str) -> None:
    """Raise ModelError if the hub cannot be reached: its client would retry each file for a minute."""
    import huggingface_hub as hub

    try:
        hub.HfApi().model_info(_full(name), timeout=_TIMEOUT)
    except Exception as error:
        raise ModelError(
            f"encoder {name!r} is neither a folder nor in the local model cache, and the hub did not "
            f"return it ({error}); check the name or the network, or pass the folder of a downloaded model"
        ) from error


def _full(name: str) -> str:
    return name if "/" in name else f"sentence-transformers/{name}"
