"""The rows of a table, and which of them are its head."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from precise_rag.structure.marks import BORDER, COLUMNS, DELIMITER_ROW, without_tags

BETWEEN_CELLS = " | "
"""Between the columns in the title that stands for the head of a table."""

_WHOLE_TABLE = 600
"""Characters up to which a table is short; runs of white space count as one."""

_LONGEST_TITLE = 200
_HTML_ROW = re.compile(r"<tr\b", re.IGNORECASE)
_HTML_CELL = re.compile(r"<t[hd]\b[^<>]{0,300}>", re.IGNORECASE)
_HTML_HEAD = re.compile(r"<th\b", re.IGNORECASE)
_RULE_MARKS = frozenset("+|-= ")
_HEAD_RULE = re.compile(r"[ \t]*[+|]=")
_LIGHT_BORDER = re.compile(r"[ \t]*-+(?:[ \t]+-+)*[ \t]*\Z")
_SPACES = re.compile(r" {2,}|\t")


class Rows(NamedTuple):
    """Where the n rows of a table start, ascending; the first one where the table does.

    n_head: rows that are its head, at the beginning; 0 without one.
    """

    starts: tuple[int, ...]
    n_head: int


class _Line(NamedTuple):
    start: int
    text: str


def is_short_table(text: str, start: int, end: int) -> bool:
    """Check whether the table `text[start:end]` is short: then it is one unit, with its head."""
    return end - start <= _WHOLE_TABLE or len(" ".join(text[start:end].split())) <= _WHOLE_TABLE


def table_rows(text: str, start: int, end: int) -> Rows:
    """Return the rows of a table: Markdown, HTML, a grid, or set with spaces.

    text, start, end: the table is `text[start:end]`. A row may have several lines. Rules belong to the row
    before them.
    """
    if _HTML_ROW.search(text, start, end):
        return _html_rows(text, start, end)
    lines = [line for line in _lines(text, start, end) if line.text.strip()]
    if not lines:
        return Rows((start,), 0)
    first = lines[0].text.strip()
    if is_grid_rule(first):
        return _ruled_rows(lines, start, by_rules=True)
    if BORDER.match(first):
        return _ruled_rows(lines, start, by_rules=False)
    if len(lines) > 1 and DELIMITER_ROW.match(lines[1].text):
        return Rows((start, *(line.start for line in lines[2:])), 1)
    if "|" in first:
        return Rows((start, *(line.start for line in lines[1:])), 0)
    wide = [line for line in lines if COLUMNS.match(line.text.strip())]
    names_columns = len(wide) > 2 and not any(map(str.isdigit, first)) and COLUMNS.match(first) is not None
    return Rows((start, *(line.start for line in wide if line is not lines[0])), int(names_columns))


def table_head(text: str, start: int, end: int) -> tuple[int, str]:
    """Return where the head of the table `text[start:end]` ends, and its cells as a title.

    The title has bars between the columns: "Option | Meaning". A table without a head ends it where it
    starts, with an empty title.
    """
    rows = table_rows(text, start, end)
    if not rows.n_head or rows.n_head >= len(rows.starts):
        return start, ""
    head_end = rows.starts[rows.n_head]
    return head_end, _cells(text[start:head_end])[:_LONGEST_TITLE]


def is_grid_rule(line: str) -> bool:
    """Check whether a line without space around it is a rule between the rows of a grid table."""
    return line[0] in "+|" and ("--" in line or "==" in line) and _RULE_MARKS.issuperset(line)


def _lines(text: str, start: int, end: int) -> Iterator[_Line]:
    while start < end:
        stop = text.find("\n", start, end) + 1 or end
        yield _Line(start, text[start:stop].rstrip())
        start = stop


def _html_rows(text: str, start: int, end: int) -> Rows:
    starts = [match.start() for match in _HTML_ROW.finditer(text, start, end)]
    ends = [*starts[1:], end]
    n_head = 0
    while n_head < len(starts) and _HTML_HEAD.search(text, starts[n_head], ends[n_head]):
        n_head += 1
    is_head = n_head if n_head < len(starts) else 0
    return Rows((start, *starts[1:]), is_head)


def _ruled_rows(lines: list[_Line], start: int, by_rules: bool) -> Rows:
    """Rows between rules; or, if not `by_rules`, a row for each line that is indented as the rules are."""
    indent = len(lines[0].text) - len(lines[0].text.lstrip())
    starts: list[int] = []
    rules: list[int] = []
    """How many rows begin before each rule after the first."""
    is_new = True
    head = 0
    for line in lines:
        words = line.text.strip()
        if is_grid_rule(words) if by_rules else BORDER.match(words) or _LIGHT_BORDER.match(words):
            rules.append(len(starts))
            head = len(starts) if by_rules and _HEAD_RULE.match(line.text) and not head else head
            is_new = True
            continue
        goes_on = by_rules or len(line.text) - len(line.text.lstrip()) > indent
        if is_new or not goes_on:
            starts.append(line.start)
        is_new = False
    if not by_rules and len(rules) > 2:
        head = rules[1]
    if not starts:
        return Rows((start,), 0)
    return Rows((start, *starts[1:]), head if head < len(starts) else 0)


def _cells(head: str) -> str:
    """The words of the cells of a head, with bars between the columns."""
    if _HTML_CELL.search(head):
        cells = [without_tags(cell) for cell in _HTML_CELL.split(head)[1:]]
    else:
        lines = [line.strip() for line in head.splitlines()]
        lines = [line for line in lines if any(map(str.isalnum, line))]
        by_bars = any("|" in line for line in lines)
        split = [line.strip("|").split("|") if by_bars else _SPACES.split(line) for line in lines]
        columns = zip_longest(*split, fillvalue="") if by_bars else split
        cells = [" ".join(cell.strip() for cell in column if cell.strip()) for column in columns]
        cells = cells if by_bars else [cell.strip() for row in split for cell in row]
    return BETWEEN_CELLS.join(filter(None, cells))
