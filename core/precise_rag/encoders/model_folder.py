"""A check that a sentence-transformers folder holds files only and names no Python code of its own."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from precise_rag.errors import ModelError
from precise_rag.models.checkpoint import read_model_file

_MODULE = re.compile(r"sentence_transformers(\.\w+)+")
_ACTIVATION = re.compile(r"\w+|(torch|sentence_transformers)(\.\w+)+")


def check_no_code(folder: Path) -> None:
    """Raise ModelError if the settings in `folder` name classes outside sentence-transformers and torch.

    Some versions of sentence-transformers run Python files of a local folder that `modules.json` names.
    Pipes and devices are refused, because reading them may never end.
    """
    for file in sorted(folder.rglob("*")):
        if not file.is_file() and not file.is_dir():
            raise ModelError(f"{file} must be a file or a folder; install the model again")
        if file.name not in ("modules.json", "router_config.json", "config.json"):
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
    elif isinstance(activation := settings.get("activation_function"), str):
        yield activation, _ACTIVATION
