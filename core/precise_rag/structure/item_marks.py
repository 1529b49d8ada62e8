"""Marks of items in plain text. They say their level where indents do not: "(a)" after "(1)" is below it."""

import re
from typing import NamedTuple
from unicodedata import normalize

from precise_rag.structure.marks import ITEM
from precise_rag.structure.plain_lines import Line

_NUMBER, _ROMAN = re.compile(r"\w+(?:\.\w+)*"), re.compile(r"[ivx]+|[IVX]+")


class ItemMark(NamedTuple):
    """A kind of marks of items at an indent, and the last one: "(a)"."""

    indent: int
    kind: str
    word: str


def with_mark(marks: list[ItemMark], item: Line) -> tuple[list[ItemMark], int]:
    """Return the marks around an item with its own, and how many kinds stand above it at its indent.

    A number below "-" begins another list.
    """
    outer = [mark for mark in marks if mark.indent < item.indent]
    same = [mark for mark in marks if mark.indent == item.indent]
    match = ITEM.match(f"{item.words} ")
    word = normalize("NFKC", match[0]).strip() if match else item.words.split()[0]
    for step, mark in reversed([*enumerate(same)]):
        if mark.kind == _kind_of(word, mark.word):
            return [*outer, *same[:step], mark._replace(word=word)], step
    if same and _NUMBER.search(word) and not _NUMBER.search(same[-1].word):
        same = []
    return [*outer, *same, ItemMark(item.indent, _kind_of(word, ""), word)], len(same)


def _kind_of(word: str, last: str) -> str:
    """The kind of a mark after another one: "(i)" follows "(h)", otherwise it is a Roman number."""
    number = _NUMBER.search(word)
    if number is None:
        return word
    inside = number[0]
    if inside[0].isdigit():
        return re.sub(r"\d+", "1", word)
    is_next = len(inside) == 1 and last.strip("().") == chr(ord(inside) - 1)
    kind = word.replace(inside, "a" if inside.islower() else "A")
    return f"roman {kind}" if _ROMAN.fullmatch(inside) and not is_next else kind
