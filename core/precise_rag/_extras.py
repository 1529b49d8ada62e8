"""Optional dependencies, imported when they are first used."""

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType

from precise_rag.errors import MissingExtra


def require(module: str, *, extra: str) -> ModuleType:
    """Import and return an optional module.

    module: dotted name.
    extra: the extra of precise-rag that installs it.
    Raises MissingExtra with the pip command if the module is not installed. An import error inside
    an installed module is passed on unchanged.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module != missing and not module.startswith(f"{missing}."):
            raise
        raise MissingExtra(f"{module!r} is not installed; run: pip install 'precise-rag[{extra}]'") from error


def is_installed(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    return module in sys.modules or find_spec(module) is not None
