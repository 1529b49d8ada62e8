"""What arrays must look like, so that damaged or foreign ones are never searched.

Each module of arrays declares the forms of its own and checks what they hold. The checks raise ValueError.
"""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]


def ensure(holds: object, message: str) -> None:
    """Raise ValueError with a message unless something holds."""
    if not holds:
        raise ValueError(message)


def check_numbers(name: str, array: Array, least: int, limit: int) -> None:
    """Raise ValueError unless all numbers are at least `least` and below `limit`."""
    in_range = not array.size or (int(array.min()) >= least and int(array.max()) < limit)
    ensure(in_range, f"{name} holds numbers outside {least} to {limit}")
