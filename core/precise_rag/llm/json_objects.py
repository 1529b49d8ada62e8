"""JSON in a model's reply, which may be wrapped in prose or cut off."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from precise_rag.checks import without_repeats

OBJECT = re.compile(r'\{(?=\s*["}])')
"""The beginning of a JSON object in prose."""
_SLIPS = re.compile(r"(?<=:)\s*+\+(?=\d)|,(?=\s*+[}\]])")
"""A plus before a number and a comma behind the last item, which JSON does not have."""
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}]', re.S)


def json_objects(text: str, list_name: str = "") -> tuple[list[Mapping[str, Any]], str]:
    """Return the JSON objects in `text` that stand in no other object, in their order, and the other text.

    list_name: an object's list of this name stands for the object: its items are returned, also those before
        the place where the reply is cut off.

    An object may quote others, and what it quotes is not the model's own word. So one that is malformed, cut
    off, or has a name twice is other text with all that is in it. One that holds an object or a list and
    nothing else only wraps it. Nothing is read after an object that is too deep for the decoder.
    """
    objects: list[Mapping[str, Any]] = []
    other: list[str] = []
    opening = re.compile(rf'\{{\s*"{re.escape(list_name)}"\s*:\s*\[')
    at = read = done = 0  # read: the end of the last malformed object; only an outer one is read by its list
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=without_repeats)
    with suppress(RecursionError):
        while start := OBJECT.search(text, at):
            at = _end_of_braces(text, start.start())
            found = text[start.start() : at]
            for spelled in (found, _SLIPS.sub("", found)):
                with suppress(ValueError):  # also for a whole number of thousands of digits
                    objects += _unwrapped(decoder.decode(spelled), list_name)
                    other.append(text[done : start.start()])
                    done = at
                    break
            else:
                opened = opening.match(found) if list_name and read <= start.start() else None
                read = max(read, at)
                at = start.start() + opened.end() if opened else at
    return objects, "\n".join([*other, text[done:]])


def _end_of_braces(text: str, start: int) -> int:
    """The place behind the brace that closes the one at `start`; the end of the text without one."""
    depth = 0
    for token in _STRING_OR_BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)


def _unwrapped(value: Mapping[str, Any], list_name: str) -> Iterator[Mapping[str, Any]]:
    """The objects that an object stands for. No recursion: it may be deep."""
    while True:
        inner = next(iter(value.values())) if len(value) == 1 else value.get(list_name)
        if isinstance(inner, list):
            yield from (item for item in inner if isinstance(item, dict))
            return
        if not isinstance(inner, dict):
            yield value
            return
        value = inner
