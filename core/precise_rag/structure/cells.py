"""Tables whose cells are listed: comma-separated lines, and reStructuredText's list-table and csv-table."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

TABLE_DIRECTIVE = re.compile(r"[ \t]*\.\.[ \t]+(list|csv)-table::")
"""The first line of such a table."""

_OPTION = re.compile(r"[ \t]+:([\w-]{1,40}):[ \t]*([^\n]*)")
_LIST_ROW = re.compile(r"[ \t]+[*+-][ \t]+[*+-](?:[ \t]|$)")
_LIST_CELL = re.compile(r"[ \t]+(?:[*+-][ \t]+)?[*+-](?:[ \t]+|$)")


_FEWEST_LINES = 5
_FEWEST_CELLS = 3
_STOP = (".", ",", ":", "!", "?")
_LONGEST_LINE = 10_000
_LONGEST_CELL = 60
"""Characters of a cell on average. Lines of prose can have commas, too."""


class TableDirective(NamedTuple):
    """A table.

    rows: where its n rows start, without the lines of the directive. n_head: of them, those of the head.
    head: the cells of the head, also if an option of the directive has them; empty without a head.
    """

    rows: tuple[int, ...]
    n_head: int
    head: tuple[str, ...]


def read_table_directive(text: str, start: int, end: int) -> TableDirective:
    """Read the table `text[start:end]`, whose first line is that of a directive."""
    lines = list(_lines(text, start, end))
    options: dict[str, str] = {}
    body = 1
    while body < len(lines) and (option := _OPTION.match(lines[body][1])) is not None:
        options[option[1]] = option[2]
        body += 1
        while body < len(lines) and lines[body][1].strip() and not _OPTION.match(lines[body][1]):
            options[option[1]] += " " + lines[body][1].strip()
            body += 1
    directive = TABLE_DIRECTIVE.match(lines[0][1])
    is_list = directive is not None and directive[1] == "list"
    rows = list(_list_rows(lines[body:]) if is_list else _csv_rows(lines[body:]))
    number = options.get("header-rows", "")
    n_head = min(int(number) if number.isdecimal() else 0, len(rows))
    in_head = text[rows[0] : rows[n_head] if n_head < len(rows) else end] if n_head else ""
    named = _csv_cells(options.get("header", ""))
    cells = named or (_list_cells(in_head) if is_list else _csv_cells(in_head.partition("\n")[0]))
    return TableDirective(tuple(rows), n_head, cells)


def has_separated_cells(line: str) -> bool:
    """Check whether a line may be one of comma-separated values."""
    return line.count(_separator(line)) >= _FEWEST_CELLS - 1


def separated_lines(lines: Sequence[str]) -> int:
    """Return how many lines at the beginning are a table of comma-separated values; 0 if they are none.

    Commas or semicolons stand between the cells; all lines have as many.
    """
    mark = _separator(lines[0])
    cells = _separated(lines[0], mark)
    n_lines = 0
    for line in lines:
        if len(_separated(line, mark)) != len(cells):
            break
        n_lines += 1
    n_characters = sum(map(len, lines[:n_lines]))
    n_stops = sum(line.endswith(_STOP) for line in lines[:n_lines])
    is_table = n_lines >= _FEWEST_LINES and len(cells) >= _FEWEST_CELLS and 2 * n_stops < n_lines
    return n_lines if is_table and n_characters <= _LONGEST_CELL * n_lines * len(cells) else 0


def separated_cells(line: str) -> list[str]:
    """Return the cells of a line of comma-separated values."""
    return _separated(line, _separator(line))


def _separator(line: str) -> str:
    return max(",;", key=line.count)


def _separated(line: str, mark: str) -> list[str]:
    """The cells of the first 10,000 characters of a line."""
    read = csv.reader([line[:_LONGEST_LINE].replace("\r", " ")], delimiter=mark, skipinitialspace=True)
    return [cell.strip() for row in read for cell in row]


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Each line with where it starts."""
    while start < end:
        stop = text.find("\n", start, end) + 1 or end
        yield start, text[start:stop].rstrip()
        start = stop


def _list_rows(lines: list[tuple[int, str]]) -> Iterator[int]:
    outer = [(start, line) for start, line in lines if _LIST_ROW.match(line)]
    indent = min((len(line) - len(line.lstrip()) for _, line in outer), default=0)
    yield from (start for start, line in outer if len(line) - len(line.lstrip()) == indent)


def _csv_rows(lines: list[tuple[int, str]]) -> Iterator[int]:
    """A row goes on in the next line while a quote is open."""
    is_open = False
    for start, line in lines:
        if line.strip() and not is_open:
            yield start
        is_open ^= line.count('"') % 2 == 1


def _list_cells(head: str) -> tuple[str, ...]:
    cells: list[str] = []
    for line in head.splitlines():
        cell = _LIST_CELL.match(line)
        if cell is not None:
            cells.append(line[cell.end() :].strip())
        elif cells:
            cells[-1] = f"{cells[-1]} {line.strip()}".strip()
    return tuple(filter(None, cells))


def _csv_cells(line: str) -> tuple[str, ...]:
    return tuple(filter(None, _separated(line.strip(), ",")))
