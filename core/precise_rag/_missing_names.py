"""The error for a name that a package of ours does not have, or no longer has."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType

from precise_rag.errors import MissingName

_NOTHING: Mapping[str, str] = MappingProxyType({})


def missing_name(
    package: str,
    name: str,
    *,
    others: Iterable[ModuleType] = (),
    gone: Mapping[str, str] = _NOTHING,
) -> Exception:
    """Return the error for a name that `package.__getattr__` is asked for.

    others: modules that a user may mean: the error names the one that has the name.
    gone: what to use in place of each name that was removed.
    """
    for module in others:
        if name in module.__all__:
            return MissingName(
                f"{name} is not in {package}; import it from {module.__name__}: "
                f"from {module.__name__} import {name}"
            )
    if name in gone:
        return MissingName(f"{name} is no longer in {package}; use {gone[name]}")
    return AttributeError(f"module {package!r} has no attribute {name!r}")
