"""Models of the Hugging Face hub: their folders in the local cache, and their files there."""

from collections.abc import Sequence
from pathlib import Path

from precise_rag.errors import ModelError

_TIMEOUT = 10.0


def hub_folder(name: str, weights: Sequence[str], *, download: bool) -> Path | None:
    """Return the folder of a model in the local cache of the hub, or None if it is not there.

    name: on the hub; without an owner it is one of sentence-transformers.
    weights: files of weights; one of them is needed.
    download: if none of them is there, or no tokenizer.json, fetch the first that the hub has, and all
        settings. Then ModelError is raised if the hub does not return them.
    """
    import huggingface_hub as hub

    try:
        folder = Path(hub.snapshot_download(_full(name), local_files_only=True))
        has_weights = any((folder / file).exists() for file in weights)
        if not download or (has_weights and any(folder.rglob("tokenizer.json"))):
            return folder
    except (OSError, ValueError):  # not in the cache, or not a name
        if not download:
            return None
    files = hub_files(name)
    wanted = [f"{file}*" for file in weights if file in files][:1]  # large ONNX files have data beside them
    try:
        return Path(hub.snapshot_download(_full(name), allow_patterns=["*.json", *wanted]))
    except (OSError, ValueError) as error:
        raise ModelError(f"model {name!r} cannot be loaded: {error}") from error


def hub_files(name: str) -> list[str]:
    """Return the names of a model's files on the hub.

    Raises ModelError if it cannot be reached: its client would retry each file for a minute.
    """
    import huggingface_hub as hub

    try:
        return [file.rfilename for file in hub.HfApi().model_info(_full(name), timeout=_TIMEOUT).siblings]
    except Exception as error:
        raise ModelError(
            f"model {name!r} is neither a folder nor in the local model cache, and the hub did not "
            f"return it ({error}); check the name or the network, or pass the folder of a downloaded model"
        ) from error


def _full(name: str) -> str:
    return name if "/" in name else f"sentence-transformers/{name}"
