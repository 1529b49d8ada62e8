"""JSON in a model's reply, which may be wrapped in prose or cut off."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_OBJECT = re.compile(r'\{(?=\s*["}])')
_READ = 100_000
"""Characters that are read, from the end of a reply: decoding at each brace of a broken one takes long."""


def json_objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects in `text`, nested ones too, in the order in which they begin.

    An object that is cut off or malformed is skipped; complete objects inside it are still found. At most the
    last 100,000 characters are read, and nothing after an object that is too deep for the decoder.
    """
    text, decoder, at = text[-_READ:], json.JSONDecoder(), 0
    while start := _OBJECT.search(text, at):
        try:
            value, at = decoder.raw_decode(text, start.start())
        except RecursionError:
            return
        except ValueError:  # also for a whole number of thousands of digits
            at = start.end()
        else:
            yield from _objects_in(value)


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
