"""Counts of what the tests of reliability tried."""

import json
import os

VARIABLE = "PRECISE_FIGURES"
"""Names the file that the counts are added to; without it they are not kept."""


def count(what: str, number: int) -> None:
    """Note that a test tried something so many times, and that every try ended well."""
    if path := os.environ.get(VARIABLE):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, "number": number}) + "\n")
