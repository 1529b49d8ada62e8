"""The rules of a .gitignore file, matched in linear time.

A regular expression of several `*` can take for ever on a name that nearly fits. Here each `*` takes the
shortest text after which what follows it fits, and never takes more; for parts of fixed length, that finds
a match if there is one. A name of n characters costs at most n times the length of the pattern.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_ANY_FOLDERS = None
"""The part `**` of a rule: any number of folders, also none."""
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class _Rule(NamedTuple):
    """A line of the file. anywhere: its one part is compared with the last part of a path."""

    ignores: bool
    folders_only: bool
    anywhere: bool
    parts: tuple[re.Pattern[str] | str | None, ...]


class IgnoreRules:
    """The rules of a .gitignore file, as git reads them; a malformed rule matches nothing."""

    def __init__(self, text: str) -> None:
        lines = (line.removesuffix("\r") for line in text.split("\n"))
        self._rules = tuple(rule for line in dict.fromkeys(reversed([*lines])) if (rule := _rule(line)))

    def check(self, parts: Sequence[str], is_folder: bool) -> bool | None:
        """Return whether a path is ignored; None if no rule says.

        parts: the names that lead from the folder of the file to the path.
        """
        for rule in self._rules:
            if (is_folder or not rule.folders_only) and _fits(rule, parts):
                return rule.ignores
        return None


def _rule(line: str) -> _Rule | None:
    """The rule of a line; None for a blank one, a comment or a malformed rule."""
    while line.endswith(" ") and (len(line) - len(line[:-1].rstrip("\\"))) % 2:
        line = line[:-1]
    if not line or line.startswith("#"):
        return None
    pattern = line.removeprefix("!")
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    anywhere = "/" not in pattern
    names = pattern.removeprefix("/").split("/")
    if not anywhere and names[-1] == "**":
        names.append("*")  # what is in the folder, not the folder itself
    try:
        parts = tuple(_ANY_FOLDERS if name == "**" and not anywhere else part_of(name) for name in names)
    except ValueError:
        return None
    return _Rule(not line.startswith("!"), folders_only, anywhere, parts) if pattern else None


def _fits(rule: _Rule, path: Sequence[str]) -> bool:
    if rule.anywhere:
        return fits_part(rule.parts[0], path[-1])
    at = place = 0
    again: tuple[int, int] | None = None  # where to go on when the last `**` takes one folder more
    while place < len(path):
        if at < len(rule.parts) and rule.parts[at] is _ANY_FOLDERS:
            at, again = at + 1, (at + 1, place)
        elif at < len(rule.parts) and fits_part(rule.parts[at], path[place]):
            at, place = at + 1, place + 1
        elif again is None:
            return False
        else:
            again = (again[0], again[1] + 1)
            at, place = again
    return all(part is _ANY_FOLDERS for part in rule.parts[at:])


def fits_part(part: re.Pattern[str] | str | None, name: str) -> bool:
    """Whether a name fits a part of a pattern, which `part_of` made."""
    if isinstance(part, re.Pattern):
        return part.fullmatch(name) is not None
    return part is None or part == name


def part_of(pattern: str) -> re.Pattern[str] | str:
    """Compile a pattern of one name, with `*`, `?`, `[…]` and escapes; a plain one stays a text.

    Raises ValueError if it is malformed.
    """
    if not set(pattern) & set("*?[\\"):
        return pattern
    first, *later = _between_stars(pattern)
    if not later:
        return re.compile(first, re.DOTALL)
    shortest = "".join(f"(?>.*?{piece})" for piece in later[:-1] if piece)
    return re.compile(f"{first}{shortest}.*{later[-1]}", re.DOTALL)


def _between_stars(pattern: str) -> Iterator[str]:
    """The pieces between the `*`, each an expression of a fixed length."""
    piece, at = "", 0
    while at < len(pattern):
        mark = pattern[at]
        at += 1
        if mark == "*":
            yield piece
            piece = ""
        elif mark == "?":
            piece += "."
        elif mark == "[":
            one, at = _bracket(pattern, at)
            piece += one
        elif mark == "\\":
            piece += re.escape(pattern[at : at + 1] or _malformed(pattern))
            at += 1
        else:
            piece += re.escape(mark)
    yield piece


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """The expression of a bracket, whose content begins at `at`, and where it ends."""
    is_not = pattern.startswith(("!", "^"), at)
    at += is_not
    members, begin = "", at
    while pattern[at : at + 1] != "]" or at == begin:
        if pattern.startswith("[:", at) and (end := pattern.find(":]", at)) > 0:
            members += _CLASSES.get(pattern[at + 2 : end]) or _malformed(pattern)
            at = end + 2
            continue
        low, at = _letter(pattern, at)
        members += re.escape(low)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("]", ""):
            high, at = _letter(pattern, at + 1)
            members += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
    return f"[{'^' if is_not else ''}{members}]", at + 1


def _letter(pattern: str, at: int) -> tuple[str, int]:
    at += pattern[at : at + 1] == "\\"
    return pattern[at : at + 1] or _malformed(pattern), at + 1


def _malformed(pattern: str) -> str:
    raise ValueError(f"{pattern!r} ends too early")
