"""Manual pages, from their source to text as `man` writes it: titles, options and examples by their indents.

No library reads them in Python: the programs that do, groff and mandoc, are not on every machine, and one of
them runs what a page asks for. This reads the macros of `man`; those of `mdoc` are in `mdoc.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from precise_rag.documents.manual_page import Page
from precise_rag.documents.mdoc import Mdoc

_LONGEST_PAGE = 2_000_000
"""Lines of a page at most."""

_FIRST_LINE = re.compile(r"(?:[.'][ \t]*(?:\\\"|TH|Dd|Dt|so|SH|de|ds|if|ie|nr|ig)|\.\.\.|\\\")")
_DEFINITION = re.compile(r"[.'][ \t]*(de1?|am1?|ig|ds)\b[ \t]*")
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|\S)+)')
_CONDITION = re.compile(r"[.'][ \t]*(if|ie|el)\b[ \t]*")


def is_manual(text: str) -> bool:
    """Check whether a text is the source of a manual page, by its first line that is not blank."""
    return _FIRST_LINE.match(text.lstrip()) is not None


class Manual(NamedTuple):
    """A manual page as text, and its name as "ls(1)", which is empty if it has none."""

    text: str
    name: str


def manual_text(source: str) -> Manual:
    """Read a manual page: titles at the margin, text indented, terms above what they mean."""
    strings = {"lq": "“", "rq": "”", "R": "®", "Tm": "™", "``": '"', "''": '"'}
    lines = list(_Source(source.splitlines()[:_LONGEST_PAGE], strings).lines())
    page = Page(strings)
    is_mdoc = any(re.match(r"[.'][ \t]*Dd\b", line) for line in lines)
    read: Callable[[str, list[str]], None] = Mdoc(page).read if is_mdoc else page.read
    for line in lines:
        if line[:1] in (".", "'") and page.table is None:
            name, _, rest = line[1:].strip().partition(" ")
            if name and not name.startswith('\\"'):
                read(name, arguments(rest))
        else:
            page.add_line(line)
    return Manual(page.text(), page.name)


def arguments(text: str) -> list[str]:
    """Return the arguments of a macro: words, and those in quotes as one. Their escapes stay."""
    text = re.sub(r'(?:^|\s)\\".*', "", text)
    return [
        (match[1].replace('""', '"') if match[1] is not None else match[2])
        for match in _ARGUMENT.finditer(text)
    ]


class _Source:
    """The lines that a terminal shows: without comments, definitions of macros, and what is for a printer."""

    def __init__(self, lines: Sequence[str], strings: dict[str, str]) -> None:
        self._given = lines
        self._strings = strings
        self._hidden_until = ""
        """The line that ends what is left out."""
        self._depth = 0
        """Braces that are open in what is left out."""
        self._was_true = True

    def lines(self) -> Iterator[str]:
        """Yield them, lines that go on joined."""
        pending: list[str] = []
        for line in (*self._given, ""):  # the last line may go on, too
            if line.endswith("\\") and not line.endswith("\\\\"):
                pending.append(line[:-1])
                continue
            line = "".join([*pending, line])
            pending = []
            if self._is_shown(line) and (shown := self._without_condition(line)) is not None:
                shown = shown.replace("\\}", "")
                if not self._defines(shown):
                    yield shown

    def _is_shown(self, line: str) -> bool:
        if self._hidden_until:
            self._hidden_until = "" if line.strip() == self._hidden_until else self._hidden_until
            return False
        if self._depth:
            self._depth += line.count("\\{") - line.count("\\}")
            return False
        return True

    def _without_condition(self, line: str) -> str | None:
        """The line, or what is conditional in it; None if its condition does not hold."""
        match = _CONDITION.match(line)
        if match is None:
            return line
        rest = line[match.end() :]
        is_true = not self._was_true
        if match[1] != "el":
            test, _, rest = rest.partition(" ")
            is_true = self._was_true = test in ("n", "!t")
        rest = rest.strip()
        if not is_true:
            self._depth = max(rest.count("\\{") - rest.count("\\}"), 0)
            return None
        return rest.removeprefix("\\{").strip() or None

    def _defines(self, line: str) -> bool:
        """Whether a line defines a string, which is kept, or a macro, which is left out."""
        match = _DEFINITION.match(line)
        if match is None:
            return False
        words = line[match.end() :].split(None, 1)
        if match[1] == "ds":
            if words:
                self._strings[words[0]] = words[1].removeprefix('"') if len(words) > 1 else ""
        else:
            end = words[1].split()[:1] if len(words) > 1 and match[1] != "ig" else []
            self._hidden_until = f".{end[0]}" if end else ".."
        return True
