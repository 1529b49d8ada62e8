"""Objects that may be pickled or copied, and errors that name the part which cannot be."""

import pickle
import sys
from collections.abc import Callable, Mapping
from typing import Any, Self

from precise_rag.errors import InputError


class Shared:
    """Base of objects that threads share and that do not change: a copy is the object itself."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


class Portable:
    """Base of objects with parts that users supply: pickling them names the part that cannot be pickled."""

    def __getstate__(self) -> dict[str, Any]:
        check_picklable(self, vars(self))
        return dict(vars(self))


def check_picklable(
    owner: object, parts: Mapping[str, object], advice: str = "make it in the worker process"
) -> None:
    """Raise InputError if one of the parts cannot be pickled.

    owner: the object that is being pickled. parts: by name. advice: what to do instead.
    """
    for name, part in parts.items():
        if isinstance(part, Portable | Shared):
            continue
        if (error := _pickling_error(part)) is not None:
            raise InputError(
                f"{type(owner).__name__} cannot be pickled, because its {name.lstrip('_')}, of type "
                f"{type(part).__name__}, cannot ({error}); {advice}"
            ) from error


def _pickling_error(part: object) -> Exception | None:
    """Return the error of pickling `part` by the pickler that is at work, or None."""
    try:
        _dumps_at_work()(part)
    except Exception as error:
        return error
    return None


def _dumps_at_work() -> Callable[[object], bytes]:
    """Return `pickle.dumps`, or the function of cloudpickle if it called us: it can send functions."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        name = frame.f_globals.get("__name__", "")
        if name in ("cloudpickle.cloudpickle", "ray.cloudpickle.cloudpickle"):
            dumps: Callable[[object], bytes] = frame.f_globals["dumps"]
            return dumps
    return pickle.dumps
