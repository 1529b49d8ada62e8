"""JSON as a tree of its elements, each with its place in the text, and a part of it as JSON again."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from precise_rag.tokens import estimate_tokens
from precise_rag.types import Span

LEFT_OUT = "…"
"""The key, in an object, of the marks for what is left out of it."""

_DEEPEST = 40
"""Levels that are looked into; what is deeper stays in one piece."""
_LABEL_TOKENS, _MOST_LABELS = 16, 8
"""Size and number of the plain values of an object that stay with anything that is kept of it."""
_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPED = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
_DECODER = json.JSONDecoder(strict=False)

Kind = Literal["object", "array", "lines", "string", "plain"]
Split = Callable[[str], Sequence[Span]]


@dataclass(frozen=True, slots=True)
class Element:
    """A value in a JSON text, and the elements that it consists of.

    start, end: its place in the text.
    kind: "lines" is a text with one value on each line; "plain" is a number, true, false or null.
    key: its name in an object, as written, with the quotes.
    path: the keys that lead to it, as words.
    parts: the elements of it, if it is too long for one piece: values, or spans of a string.
    """

    start: int
    end: int
    kind: Kind
    key: str = ""
    path: str = ""
    parts: tuple["Element", ...] = ()


def read_json(text: str, unit_tokens: int, split: Split) -> Element | None:
    """Return a JSON text, or JSON lines, as a tree; None if it is neither.

    unit_tokens: what has more is taken apart.
    split: cuts a long string into spans that cover it.
    """
    start = _skip(text, 0)
    if text[start : start + 1] not in ("{", "["):
        return None
    try:
        _, end = _DECODER.raw_decode(text, start)
        if _skip(text, end) == len(text):
            return _taken_apart(text, _element(text, start, end), unit_tokens, split, 0)
        lines = tuple(_lines(text))
        parts = tuple(_taken_apart(text, line, unit_tokens, split, 1) for line in lines)
        return Element(start, len(text.rstrip()), "lines", parts=parts)
    except (ValueError, RecursionError):
        return None


def longest_string(text: str, root: Element) -> Element | None:
    """Return the string that is more than half of a JSON text, if there is one: a fetched page or file."""
    long = [one for one in _all(root) if one.kind == "string" and text[one.start] == '"']
    longest = max(long, key=lambda one: one.end - one.start, default=None)
    return longest if longest is not None and 2 * (longest.end - longest.start) > len(text) else None


def value_of(text: str, string: Element) -> str:
    """Return a string without escapes."""
    return str(_DECODER.raw_decode(text, string.start)[0])


def parted(text: str, root: Element, string: Element, spans: Sequence[Span]) -> tuple[Element, list[Span]]:
    """Return the tree with other parts of one string, and their places in the text.

    spans: the parts, in the string without escapes, in its order and apart from each other.
    """
    starts = _starts(text, string)
    ends = [(starts[span.start], starts[span.end]) for span in spans]
    parts, place = [], string.start + 1
    for start, end in ends:
        parts += [Element(place, start, "string", path=string.path)] * (start > place)
        parts.append(Element(start, end, "string", path=string.path))
        place = end
    parts += [Element(place, string.end - 1, "string", path=string.path)] * (string.end - 1 > place)
    new = replace(string, parts=tuple(parts))

    def put(one: Element) -> Element:
        return new if one == string else replace(one, parts=tuple(put(part) for part in one.parts))

    return put(root), [Span(*place) for place in ends]


def _all(one: Element) -> Iterator[Element]:
    yield one
    for part in one.parts:
        yield from _all(part)


def units_of(element: Element) -> Iterator[Element]:
    """Yield the smallest elements, in the order of the text."""
    if not element.parts:
        yield element
    for part in element.parts:
        yield from units_of(part)


def words_of(text: str, unit: Element) -> str:
    """Return a unit as one reads it: with the keys above it, and without escapes."""
    raw = text[unit.start : unit.end]
    if unit.kind == "string" and raw[:1] != '"':  # a part of one
        return str(json.loads(f'"{raw}"', strict=False))
    value = json.loads(f"{{{unit.key}:{raw}}}" if unit.key else raw, strict=False)
    shown = json.dumps(value, ensure_ascii=False)
    return f"{unit.path}: {shown}" if unit.path else shown


def written(text: str, root: Element, kept: Collection[Span], mark: Callable[[int, int], str]) -> str:
    """Return what is kept as JSON, or JSON lines, with a mark where something is left out.

    kept: the places of units.
    mark: what stands for the characters from one place to another. It is a string of its own in a list, in
        an object the value of `LEFT_OUT`.
    """
    return _written(text, root, frozenset(kept), mark) or json.dumps(
        mark(root.start, root.end), ensure_ascii=False
    )


def _written(text: str, one: Element, kept: frozenset[Span], mark: Callable[[int, int], str]) -> str | None:
    if not one.parts:
        return text[one.start : one.end] if _place(one) in kept else None
    if one.kind == "string":
        return _written_string(text, one, kept, mark)
    shown = [_written(text, part, kept, mark) for part in one.parts]
    if not any(piece is not None for piece in shown):
        return None
    labels = _labels(text, one)
    pieces: list[tuple[Element | None, str]] = []
    holes: list[tuple[int, int]] = []
    for part, piece in zip(one.parts, shown, strict=True):
        if piece is None and part in labels:
            piece = text[part.start : part.end]
        if piece is not None:
            pieces.append((part, piece))
        elif pieces and pieces[-1][0] is None:
            holes[-1] = (holes[-1][0], part.end)
            pieces[-1] = (None, mark(*holes[-1]))
        else:
            holes.append((part.start, part.end))
            pieces.append((None, mark(part.start, part.end)))
    return _joined(one.kind, pieces)


def _written_string(
    text: str, one: Element, kept: frozenset[Span], mark: Callable[[int, int], str]
) -> str | None:
    """The parts of a string that are kept; those that follow each other as they are written."""
    runs = [(is_kept, list(run)) for is_kept, run in groupby(one.parts, lambda part: _place(part) in kept)]
    if not any(is_kept for is_kept, _ in runs):
        return None
    places = [(is_kept, run[0].start, run[-1].end) for is_kept, run in runs]
    shown = [text[start:end] if is_kept else mark(start, end) for is_kept, start, end in places]
    return '"' + "\\n".join(shown) + '"'


def _joined(kind: Kind, pieces: list[tuple[Element | None, str]]) -> str:
    """The pieces of one element; those without an element are marks."""
    if kind == "object":
        named = [f"{part.key}: {piece}" for part, piece in pieces if part]
        if marks := " ".join(piece for part, piece in pieces if part is None):
            named.append(f'"{LEFT_OUT}": "{marks}"')
        return "{" + ", ".join(named) + "}"
    listed = [piece if part else json.dumps(piece, ensure_ascii=False) for part, piece in pieces]
    return "\n".join(listed) if kind == "lines" else "[" + ", ".join(listed) + "]"


def _labels(text: str, one: Element) -> frozenset[Element]:
    """Short plain values of an object, such as a name or an address, if it has few."""
    if one.kind != "object":
        return frozenset()
    short = [
        part
        for part in one.parts
        if part.kind in ("plain", "string")
        and not part.parts
        and estimate_tokens(text[part.start : part.end]) <= _LABEL_TOKENS
    ]
    return frozenset(short) if len(short) <= _MOST_LABELS else frozenset()


def _taken_apart(text: str, one: Element, unit_tokens: int, split: Split, depth: int) -> Element:
    if depth > _DEEPEST or one.kind == "plain" or estimate_tokens(text[one.start : one.end]) <= unit_tokens:
        return one
    if one.kind == "string":
        parts = tuple(_string_parts(text, one, split))
    else:
        parts = tuple(
            _taken_apart(text, part, unit_tokens, split, depth + 1) for part in _elements(text, one)
        )
    return replace(one, parts=parts)


def _elements(text: str, one: Element) -> Iterator[Element]:
    """The values of an object or list."""
    place = _skip(text, one.start + 1)
    while place < one.end - 1:
        key, path = "", one.path
        if one.kind == "object":
            name, after = _DECODER.raw_decode(text, place)
            key, path = text[place:after], f"{one.path} {name}".strip()
            place = _skip(text, _skip(text, after) + 1)
        _, end = _DECODER.raw_decode(text, place)
        yield _element(text, place, end, key, path)
        place = _skip(text, _skip(text, end) + 1)


def _string_parts(text: str, one: Element, split: Split) -> Iterator[Element]:
    """The spans of a string, at their places in the text, where a character may be written as an escape."""
    starts = _starts(text, one)
    value = value_of(text, one)
    if len(starts) != len(value) + 1:  # halves of characters
        return
    for start, end in split(value):
        body = value[start:end].strip()
        if body:
            start = value.index(body, start)
            yield Element(starts[start], starts[start + len(body)], "string", path=one.path)


def _starts(text: str, string: Element) -> list[int]:
    """Where each character of a string is written, and where the string ends."""
    places = [match.start() for match in _ESCAPED.finditer(text, string.start + 1, string.end - 1)]
    return [*places, string.end - 1]


def _lines(text: str) -> Iterator[Element]:
    """The values of JSON lines. Raises ValueError if a line is none."""
    place = 0
    for line in text.split("\n"):
        if line.strip():
            start = _skip(text, place)
            value, end = _DECODER.raw_decode(text, start)
            if not isinstance(value, dict | list) or text[end : place + len(line)].strip():
                raise ValueError("not one value on each line")
            yield _element(text, start, end)
        place += len(line) + 1


def _place(one: Element) -> Span:
    return Span(one.start, one.end)


def _element(text: str, start: int, end: int, key: str = "", path: str = "") -> Element:
    kinds: dict[str, Kind] = {"{": "object", "[": "array", '"': "string"}
    return Element(start, end, kinds.get(text[start], "plain"), key, path)


def _skip(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return space.end() if space else place
