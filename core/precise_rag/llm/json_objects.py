"""JSON in a model's reply, which may be wrapped in prose or cut off."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_MAX_DEPTH = 64
_MAX_DIGITS = 300
"""Longer whole numbers are read as floats, which may be infinite."""

_READ = 4096
"""Characters that are decoded first; more if the object does not end there. An error costs time in
proportion to the text that the decoder was given."""

_UNSURE = 16
"""An error this close to the end of what the decoder was given may only mean that more follows."""

_OBJECT = re.compile(r'\{(?=\s*["}])')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[][{}]', re.DOTALL)


def json_objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield every JSON object in `text`, nested ones too, in the order in which they begin.

    An object that is cut off or malformed is skipped; complete objects inside it are still found,
    unless they are more than 64 levels deep in it. Time is linear in the length of the text.
    """
    at = 0
    while start := _OBJECT.search(text, at):
        value, at = _decoded(text, start.start())
        if value is None:
            inside, at = _complete_objects(text, start.start(), at)
            for place in inside:
                yield from _objects_in(_decoded(text, place)[0])
        else:
            yield from _objects_in(value)


def _decoded(text: str, start: int) -> tuple[Any, int]:
    """Decode the object that begins at `start`.

    Returns it and its end; None and the place of the error if there is one, or the end of the text if
    the object is too deep for the decoder.
    """
    size = _READ
    while True:
        part = text[start : start + size]
        try:
            value, end = _DECODER.raw_decode(part)
        except json.JSONDecodeError as error:
            unsure = error.pos > len(part) - _UNSURE or error.msg.startswith("Unterminated string")
            if not unsure or start + size >= len(text):
                return None, start + max(error.pos, 1)
        except RecursionError:
            return None, len(text)
        else:
            return value, start + end
        size *= 4


def _complete_objects(text: str, start: int, end: int) -> tuple[list[int], int]:
    """Find the complete objects in text[start:end], which is the beginning of an object.

    Returns where the outermost complete ones begin, and where the reading ended: at `end`, or where
    the object becomes too deep.
    """
    opened: list[tuple[str, int]] = []
    complete: list[int] = []
    for match in _TOKEN.finditer(text, start, end):
        token = match[0]
        if token in "{[":
            if len(opened) == _MAX_DEPTH:
                return complete, match.start()
            opened.append((token, match.start()))
        elif token in "}]" and opened:
            kind, place = opened.pop()
            if kind == "{":
                while complete and complete[-1] > place:
                    complete.pop()
                complete.append(place)
    return complete, end


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_DECODER = json.JSONDecoder(parse_int=_whole_number)


def _objects_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects in a JSON value, itself included, outer before inner. No recursion: it may be deep."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
