"""A check that a folder for sentence-transformers holds files only and brings no code of its own."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from precise_rag.checkpoints.saved import read_model_file
from precise_rag.errors import ModelError

_MODULE = re.compile(r"sentence_transformers(\.\w+)+")
_ACTIVATION = re.compile(r"\w+|(torch\.nn|sentence_transformers)(\.\w+)+")
_ACTIVATION_KEYS = ("activation_function", "activation_fn", "sbert_ce_default_activation_function")
_SETTINGS = ("modules.json", "router_config.json", "config.json", "config_sentence_transformers.json")
_PICKLES = (".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")
_SAFE_TORCH = (2, 6)
"""From this version on, torch reads pickles without running what they hold."""


def check_no_code(folder: Path) -> None:
    """Raise ModelError if the settings in `folder` name classes outside sentence-transformers and torch.nn.

    folder: of an encoder or a cross-encoder.
    Some versions of sentence-transformers run Python files of a local folder that `modules.json` names.
    Pickles are refused if the installed torch would run what they hold. Pipes and devices are refused,
    because reading them may never end.
    """
    for file in sorted(folder.rglob("*")):
        if not file.is_file() and not file.is_dir():
            raise ModelError(f"{file} must be a file or a folder; install the model again")
        if file.suffix in _PICKLES and _torch_version() < _SAFE_TORCH:
            raise ModelError(
                f"{file} may hold code that this torch would run; install torch "
                f"{'.'.join(map(str, _SAFE_TORCH))} or newer, or save the model as safetensors and remove it"
            )
        if file.name not in _SETTINGS:
            continue
        try:
            settings = json.loads(read_model_file(file).decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{file} cannot be read ({error}); install the model again") from error
        for name, allowed in _classes(file.name, settings):
            if not isinstance(name, str) or not allowed.fullmatch(name):
                raise ModelError(
                    f"{file} names {name!r}, which is not a part of sentence-transformers; "
                    "models with code of their own are not loaded"
                )


def _classes(file_name: str, settings: Any) -> Iterator[tuple[object, re.Pattern[str]]]:
    """The classes that a settings file names, each with the pattern that it must match."""
    if file_name == "modules.json":
        for module in settings if isinstance(settings, list) else [settings]:
            yield (module.get("type") if isinstance(module, dict) else module), _MODULE
    elif not isinstance(settings, dict):
        return
    elif file_name == "router_config.json":
        types = settings.get("types", {})
        for name in types.values() if isinstance(types, dict) else [types]:
            yield name, _MODULE
    else:
        parts = [settings, *(value for value in settings.values() if isinstance(value, dict))]
        for name in (part[key] for part in parts for key in _ACTIVATION_KEYS if key in part):
            if isinstance(name, str):
                yield name, _ACTIVATION


def _torch_version() -> tuple[int, ...]:
    """The installed torch's major and minor version; without torch, a number above every version."""
    from importlib.metadata import PackageNotFoundError, version  # takes time, and safetensors need none

    try:
        return tuple(int(part) for part in version("torch").split(".")[:2])
    except PackageNotFoundError:
        return (999,)
