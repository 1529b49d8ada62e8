"""Nested data, such as JSON, YAML, XML and settings in braces: what fits is one block, below its keys."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain

from precise_rag._memory import remembers
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
_NO_TAG = re.compile(r"(?s)<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[?!].*?(?:>|\Z)|[\"'{}\[\],]")
_ELEMENT = re.compile(r"<(/?)([^\W\d][\w.:-]*+)[^<>]*+(?:(?<=/)(>)|(>[^<]*+</\2\s*>)|>)")
"""What a tag of XML may not be read in; and a tag, of one without others in it with its end."""
_OF_PROSE = re.compile(r"(?i)p|para|li|d[dt]|t[rhd]|h[1-6]|div|span|html|b|i|em|strong|pre|script|style")
_NO_WORDS = re.compile(r"</[^<>]*>|\s[^<>\s]*xmlns[^<>]*|<")
_NAMES = [
    re.compile(rf"(?i)(?:[^\s:=]{{1,40}}: ?){{0,2}}(?:{keys})[:=] ?(?!(?:null|none|true|false)\Z)[^\s,]")
    for keys in (
        r"\w{0,20}(?:name|title|label|login)|artifactid|author|creator|from|sender|user|subject|kind|date|time"
        r"|created\w{0,9}|updated|published",
        "id|key|uuid|number|code",
        r"[\w -]{1,60}",
    )
]
"""Values that tell which record it is: names, people and times, or else numbers, or else any."""
_COMMENTS = re.compile(r"(?m)^[ \t]*+#.*\n?|(?<=:)[ \t]+#.*")
_BELOW_ANY = 1 << 40


@dataclass(slots=True)
class _Value:
    """A value with its key, `text[start:end]`, and the values in it.

    depth: by its indent, of YAML. is_only: whether no other one is beside it. fields: short values in it that
    not all values beside it have.
    """

    start: int
    end: int = 0
    values: list[_Value] = field(default_factory=list)
    depth: int = -2
    is_only: bool = False
    fields: Sequence[str] = ()


def is_data(text: str) -> bool:
    """Check whether a text is nested data: JSON, lines of it, Python's notation, YAML, settings in braces."""
    if _with_brackets(text):
        return True
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
    n_lines = n_entries = n_names = n_values = n_nested = n_sentences = 0
    is_parent, indent = False, 0
    for line in body.split("\n"):
        words = line.strip()
        if not words or words[0] == "#":
            continue
        now, entry = indent_of(line), _ENTRY.match(words)
        n_lines += 1
        n_nested += is_parent and (now > indent or (now == indent and words[0] == "-"))
        n_entries += entry is not None and not entry["words"]
        n_names += entry is None and words[:2] == "- " and words.count(" ") == 1
        n_values += entry is not None or words[:2] == "- " or words == "---" or now > indent
        n_sentences += " " in words and words[-1] in ".!?"
        if entry is not None:
            has_value = bool(entry["value"] or entry["words"])
            is_parent, indent = words[:2] == "- " or not has_value, now + has_value
    is_full = n_values >= _SHARE_OF_LINES * n_lines and 2 * (n_entries + n_names) >= n_lines
    return n_nested >= 2 and n_entries >= _FEWEST and is_full and 5 * n_sentences <= n_lines


def data_blocks(text: str) -> Iterator[tuple[BlockStart, int, tuple[str, ...]]]:
    """Yield the start of each block of nested data, its place, and the keys above it, outermost first.

    An object of a list, or a document of several, that is more than one block has its first values as a key.
    """
    body = text[:READ].strip()
    is_yaml = not (xml := _with_brackets(text)) and _is_yaml(body)
    root = _by_indents(text) if is_yaml else _by_brackets(xml or text, not xml and _is_braced(body))
    root.is_only = True
    waiting: list[tuple[_Value, int, tuple[str, ...], tuple[str, ...]]] = [(root, 0, (), ())]
    """Values, the start of the first block in each, what is above that, and what is above the others."""
    while waiting:
        value, start, above, path = waiting.pop()
        if not value.values or value.end - value.start <= _WHOLE:
            yield (start, "code" if value.end - start <= _LONGEST_CODE else "paragraph", 0), start, above
            continue
        records = {id(one): dict.fromkeys(_fields(text, one)) for one in value.values if one.values}
        counts = Counter(chain.from_iterable(records.values()))
        for one in value.values:
            one.fields = [its for its in records.get(id(one), ()) if counts[its] < max(len(records), 2)]
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
    """The key of a value; without one, or with the tag of an element, what names it, if there are others."""
    first = value.values[0].start
    head = _COMMENTS.sub("", text[value.start : first]).strip()
    tag = head.rfind("<") if head.endswith(">") else -1
    key = _words(head[max(tag, 0) :][:_LONGEST_TITLE])
    if tag < 0 and (value.is_only or (key and head[0] != "-")):
        return key
    kinds = ([one for one in value.fields if kind.match(one)] for kind in _NAMES[: 3 if tag < 0 else 2])
    names = ", ".join([key] * (tag >= 0) + next(filter(None, kinds), [])) or key
    names = names or _words(text[first : first + _LONGEST_TITLE])
    return names if len(names) <= _LONGEST_TITLE else names[: names.rfind(", ", 0, _LONGEST_TITLE)]


def _fields(text: str, value: _Value, is_above: bool = True) -> Iterator[str]:
    """The short values in a value, and the names in those in it, if they have different keys."""
    head = text[value.start : value.values[0].start].strip()
    yield _words(head) if head[:1] == "-" else ""
    heads = (text[one.start : one.values[0].start] if one.values else "" for one in value.values)
    keys = [(head.split() or [""])[0] for head in heads]
    n_same = Counter(keys)
    for one, key in zip(value.values, keys, strict=True):
        if not one.values and one.end - one.start <= _TOGETHER:
            yield _words(_COMMENTS.sub("", text[one.start : one.end]))
        elif is_above and key and n_same[key] == 1 and "" in n_same:
            names = enumerate(filter(_NAMES[0].match, _fields(text, one, False)))
            yield from (words if n else f"{_words(key)}: {words}" for n, words in names)


def _words(data: str) -> str:
    """Keys and values without their signs, on one line."""
    data = _NO_WORDS.sub("", data).replace(">", ": ") if "<" in data else data
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


@remembers(4, longest=READ)  # a format is detected, then read
def _with_brackets(text: str) -> str:
    """XML with brackets for the tags around elements, and commas, as long as before; "" of other text.

    All elements end, unless the first line tells that it is XML.
    """
    if not text[:1_000].lstrip("\ufeff \t\n").startswith("<"):
        return ""
    bare = _NO_TAG.sub(lambda part: "x" * len(part[0]), text)
    tags = [*_ELEMENT.finditer(bare)]
    around = Counter((tag[2], tag[1]) for tag in tags if not (tag[3] or tag[4]))
    is_whole = "<?xml" in text[:99] or all(around[name, ""] == around[name, "/"] for name, _ in around)
    if not (around and is_whole) or any(_OF_PROSE.fullmatch(tag[2]) for tag in tags):
        return ""

    def signs(tag: re.Match[str]) -> str:
        last = "," if any(tag.group(1, 3, 4)) else "{"
        return f"{'}' if tag[1] else 'x'}{'x' * (len(tag[0]) - 2)}{last}"

    return _ELEMENT.sub(signs, bare)


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
