"""What arrays must look like, so that damaged or foreign ones are never searched.

Each module of arrays declares the forms of its own and checks what they hold. The checks raise ValueError.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Form(NamedTuple):
    """The form of an array.

    kinds: the kinds of number it may hold, as in `numpy.dtype.kind`: "i", "u" or "f".
    axes: its number of axes.
    """

    kinds: str
    axes: int

    def check(self, name: str, array: Array) -> None:
        """Raise ValueError unless an array has the form; name: of the array, for the message."""
        fits = array.dtype.kind in self.kinds and array.ndim == self.axes
        ensure(fits, f"{name} is {array.dtype} with {array.ndim} axes")


Forms = Mapping[str, Form]
"""Forms of arrays by name."""


def ensure(holds: object, message: str) -> None:
    """Raise ValueError with a message unless something holds."""
    if not holds:
        raise ValueError(message)


def check_numbers(name: str, array: Array, least: int, limit: int) -> None:
    """Raise ValueError unless all numbers are at least `least` and below `limit`."""
    in_range = not array.size or (int(array.min()) >= least and int(array.max()) < limit)
    ensure(in_range, f"{name} holds numbers outside {least} to {limit}")


def least_of(array: Array) -> Any:
    """The smallest number; 1 for an empty array."""
    return array.min() if array.size else 1


def ascends(numbers: Array) -> bool:
    """Whether no number is smaller than the one before."""
    return bool((numbers[1:] >= numbers[:-1]).all())


def check_parts(name: str, arrays: Mapping[str, Array], forms: Forms) -> None:
    """Raise ValueError unless a group has exactly its arrays, each in its form.

    name: of the group. arrays: by name within the group.
    """
    ensure(arrays.keys() == forms.keys(), f"{name} has the parts {sorted(arrays)}, {sorted(forms)} expected")
    for part, form in forms.items():
        form.check(f"{name}.{part}", arrays[part])


def check_finite(arrays: Mapping[str, Array]) -> None:
    """Raise ValueError if an array has a number that is not finite."""
    for name, array in arrays.items():
        finite = array.dtype.kind != "f" or np.isfinite(array).all()
        ensure(finite, f"column {name!r} holds numbers that are not finite")
