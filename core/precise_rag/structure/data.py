"""Nested data, such as JSON, YAML and settings in braces: what fits is one block, below the keys above it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from precise_rag.structure.blocks import DEEPEST, BlockStart
from precise_rag.structure.marks import after_space, indent_of

READ = 200_000
"""Characters that are looked at to detect the format of a text."""

_WHOLE = 300
"""Characters up to which a value is one block with all that is in it."""
_TOGETHER = 100
"""Characters up to which neighbouring values are one block."""
_LONGEST_CODE = 600
_LONGEST_TITLE = 80
_FEWEST = 3
_SHARE_OF_LINES = 0.8
"""Of the lines of a text that is data but cannot be parsed, such as a part of a file."""
_CHARACTERS_OF_A_KEY = 200
_SHARE_OF_BRACED = 0.9

_QUOTED_KEY = re.compile(r"""(?:"[^"\n]{1,80}"|'[^'\n]{1,80}')[ ]{0,4}:(?=[\s"'\[{\d.tfnTFN-])""")
_NO_KEY = re.compile(r"""[\s\[\]{},]*+(?:(?:"[^"\n]*+"|'[^'\n]*+'|[\d.eE+-]++)[\s\[\]{},]*+)?\Z""")
"""A line with nothing but brackets, or one value."""
_TOKEN = re.compile(
    r"""(?<!\\)"(?:[^"\\]++|\\.)*+"|(?:(?<=[\[{,:(])|(?<=[\[{,:(] ))'(?:[^'\\\n]++|\\.)*+'|[\[{\]},\n]""",
    re.DOTALL,
)
_ENTRY = re.compile(
    r"""(?:-[ ]{1,8})*+(?:-\Z|(?:[\w./$@*~{}<>-]{1,60}(?P<words>(?: [\w./$@*~{}<>-]{1,30}){1,3})?"""
    r"""|"[^"\n]{1,80}"|'[^'\n]{1,80}'):(?:\s+#.*|\s+(?P<value>\S.*)?)?\Z)"""
)
"""A line of YAML with a key, or the dash of a list alone."""
_OPENING = re.compile(r"[\w.\"'@:/*-][^(){}=;]{0,100}\{\Z")
_SETTING = re.compile(r"[\w.-]{1,60}(?:[ \t]{0,40}[=:][ \t]|[ \t]{1,40}[^ \t(){}=][^(){}]{0,300};\Z)")
"""The line above a block of braces, and one within it."""
_SIGNS = re.compile(r"""["'{}\[\]]""")
_COMMENTS = re.compile(r"(?m)^[ \t]*+#.*\n?|(?<=:)[ \t]+#.*")
_BELOW_ANY = 1 << 40


@dataclass(slots=True)
class _Value:
    """A value with its key, `text[start:end]`, and the values in it.

    depth: by its indent, of YAML. is_only: whether no other one is beside it.
    """

    start: int
    end: int = 0
    values: list[_Value] = field(default_factory=list)
    depth: int = -2
    is_only: bool = False


def is_data(text: str) -> bool:
    """Check whether a text is nested data: JSON, lines of it, Python's notation, YAML, settings in braces."""
    body = text.strip()
    if body[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            value, end = json.JSONDecoder(strict=False).raw_decode(body)
            rest = body[end:].lstrip()
            if value and (rest[:1] in ("{", "[") if rest else "," in body):
                return True
    body = body[:READ]
    if _is_braced(body) or _is_yaml(body):
        return True
    keys = [key.start() for key in _QUOTED_KEY.finditer(body)]
    if len(keys) < _FEWEST or len(keys) * _CHARACTERS_OF_A_KEY < len(body):
        return False
    lines = [words for line in body.split("\n") if (words := line.strip())]
    n_lines = sum(bool(_QUOTED_KEY.search(line) or _NO_KEY.match(line)) for line in lines)
    return n_lines >= _SHARE_OF_LINES * len(lines) and keys[0] < len(body) / 2 < keys[-1]


def _is_braced(body: str) -> bool:
    """Whether nearly all lines are settings, as `name = value` and `name value;`, in blocks of braces."""
    lines = [words for line in body.split("\n") if (words := line.strip()) and words[0] != "#"]
    opening = [_OPENING.match(line) is not None for line in lines]
    n_closing = sum(line[0] == "}" for line in lines)
    n_values = sum(line[0] != "}" and _NO_KEY.match(line) is not None for line in lines)
    n_settings = sum(_SETTING.match(line) is not None for line in lines)
    is_nested = min(sum(opening), n_closing) >= 2 and n_settings >= _FEWEST
    n_read = sum(opening) + n_closing + n_values + n_settings
    return is_nested and n_read >= _SHARE_OF_BRACED * len(lines)


def _is_yaml(body: str) -> bool:
    """Whether nearly all lines have a key or a dash, few are sentences, and some are nested."""
    n_lines = n_entries = n_values = n_nested = n_sentences = 0
    is_parent, indent = False, 0
    for line in body.split("\n"):
        words = line.strip()
        if not words or words[0] == "#":
            continue
        now, entry = indent_of(line), _ENTRY.match(words)
        n_lines += 1
        n_nested += is_parent and (now > indent or (now == indent and words[0] == "-"))
        n_entries += entry is not None and not entry["words"]
        n_values += entry is not None or words[:2] == "- " or words == "---" or now > indent
        n_sentences += " " in words and words[-1] in ".!?"
        if entry is not None:
            has_value = bool(entry["value"] or entry["words"])
            is_parent, indent = words[:2] == "- " or not has_value, now + has_value
    is_full = n_values >= _SHARE_OF_LINES * n_lines and 2 * n_entries >= n_lines
    return n_nested >= 2 and n_entries >= _FEWEST and is_full and 5 * n_sentences <= n_lines


def data_blocks(text: str) -> Iterator[tuple[BlockStart, int, tuple[str, ...]]]:
    """Yield the start of each block of nested data, its place, and the keys above it, outermost first.

    An object of a list, or a document of several, that is more than one block has its first values as a key.
    """
    body = text[:READ].strip()
    root = _by_indents(text) if _is_yaml(body) else _by_brackets(text, _is_braced(body))
    root.is_only = True
    waiting: list[tuple[_Value, int, tuple[str, ...], tuple[str, ...]]] = [(root, 0, (), ())]
    """Values, the start of the first block in each, what is above that, and what is above the others."""
    while waiting:
        value, start, above, path = waiting.pop()
        if not value.values or value.end - value.start <= _WHOLE:
            yield (start, "code" if value.end - start <= _LONGEST_CODE else "paragraph", 0), start, above
            continue
        first, *others = _together(value.values)
        first.is_only = not others
        title = _title(text, value)
        below = (*path[: DEEPEST - 1], title) if title else path
        waiting += [(other, other.start, below, below) for other in reversed(others)]
        waiting.append((first, start, above, below))


def _together(values: Iterable[_Value]) -> Iterator[_Value]:
    """The values, one or more of them, short ones that have none in them together."""
    waiting, *others = values
    for value in others:
        if not waiting.values and not value.values and value.end - waiting.start <= _TOGETHER:
            waiting = _Value(waiting.start, value.end)
        else:
            yield waiting
            waiting = value
    yield waiting


def _title(text: str, value: _Value) -> str:
    """The key of a value; without one, what it begins with, if there are others."""
    first = value.values[0].start
    key = _words(_COMMENTS.sub("", text[value.start : first])[:_LONGEST_TITLE])
    if key or value.is_only:
        return key
    beginning = text[first : first + _LONGEST_TITLE]
    return _words(beginning[: max(beginning.rfind(","), beginning.rfind("\n"))]) or _words(beginning)


def _words(data: str) -> str:
    """Keys and values without their signs, on one line."""
    lines = (line.strip(" \t,").removeprefix("- ") for line in _SIGNS.sub("", data).splitlines())
    return " ".join(", ".join(filter(None, lines)).split()).replace(":,", ":").strip(" ,:-")


def _by_brackets(text: str, by_lines: bool) -> _Value:
    """The values between the commas of objects and lists, or of each line, which ends them outside."""
    around, start = [_Value(0, len(text))], 0
    """The objects and lists that are open, the outermost first, and where the value that is read begins."""
    closed: _Value | None = None
    """The last one that ended, with the value that is being read."""

    def end_value(end: int) -> None:
        nonlocal start, closed
        first = after_space(text, start)
        if first < end:
            value = closed or _Value(0)
            value.start = max(text.rfind("\n", start, first) + 1, start)
            value.end = end
            around[-1].values.append(value)
        start, closed = end, None

    for token in _TOKEN.finditer(text, _rest_of_string(text)):
        ends_line = token[0] == "\n" and (by_lines or len(around) == 1)
        if token[0] in "[{":
            if closed:
                end_value(token.start())
            around.append(_Value(start))
            start = token.start() + 1
        elif token[0] in "]}":
            end_value(token.start())
            if len(around) > 1:
                closed = around.pop()
                start = closed.start
        elif ends_line or (token[0] == "," and not by_lines):
            end_value(token.end())
    end_value(len(text))
    while len(around) > 1:
        closed = around.pop()
        start = closed.start
        end_value(len(text))
    return around[0]


def _rest_of_string(text: str) -> int:
    """Where the rest of a string ends with which a part of JSON begins; 0 without one."""
    before, quote, after = text.partition('"')
    is_rest = quote and before.rstrip()[-1:] not in ("", *"[{,:") and after[:10].lstrip()[:1] in (*",:]}",)
    return len(before) + 1 if is_rest else 0


def _by_indents(text: str) -> _Value:
    """The values below each key, by their indents; a document begins after three dashes.

    A comment above a value belongs to it.
    """
    root = _Value(0, len(text))
    made: list[_Value] = []
    around, place, comment = [root], 0, -1
    for line in text.split("\n"):
        words = line.strip()
        if words == "---":
            del around[1:]
        elif words[:1] == "#" and len(around) > 1:
            comment = place if comment < 0 else comment
        elif words and words[0] != "#":
            is_entry = words[:2] == "- " or _ENTRY.match(words) is not None
            depth = 2 * indent_of(line) + (words[0] == "-") if is_entry else _BELOW_ANY
            start, comment = comment if is_entry and comment >= 0 else place, -1
            if len(around) == 1:
                around.append(_Value(start, depth=-1))
                root.values.append(around[-1])
                made.append(around[-1])
            if is_entry or around[-1].depth < depth:
                while around[-1].depth >= depth:
                    around.pop()
                value = _Value(start, depth=depth)
                around[-1].values.append(value)
                around.append(value)
                made.append(value)
        place += len(line) + 1
        if comment < 0:
            root.end = around[-1].end = min(place, len(text))
    for value in reversed(made):
        value.end = value.values[-1].end if value.values else value.end
    return root
