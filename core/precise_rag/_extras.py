"""Optional dependencies, asked for at the moment of use."""

import importlib
from types import ModuleType

from precise_rag.errors import MissingExtra


def require(module: str, *, extra: str) -> ModuleType:
    """The imported `module`.

    Raises MissingExtra, naming the pip command, if `module` itself is not installed. An import
    error inside an installed module is a fault of that installation and is passed on unchanged.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module != missing and not module.startswith(f"{missing}."):
            raise
        raise MissingExtra(f"{module!r} is not installed; run: pip install 'precise-rag[{extra}]'") from error
