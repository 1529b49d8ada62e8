"""The rows of a table, and which of them are its head."""

import csv
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, pairwise, zip_longest
from typing import NamedTuple

from precise_rag.structure.heads import Cells, has_number, head_size, is_over_all, row_titles
from precise_rag.structure.marks import BORDER, COLUMNS, HEAD_RULE, in_columns, indent_of, without_tags

_HTML_ROW = re.compile(r"<tr\b", re.IGNORECASE)
_HTML_CELL = re.compile(r"<t([hd])\b([^<>]{0,300})>(\s{0,20}<(?:b|strong)>)?", re.IGNORECASE)
_HTML_SPAN = re.compile(r"\b(col|row)span\s{0,5}=\s{0,5}[\"']?([1-9]\d?)", re.IGNORECASE)
_DOUBLE = frozenset("=═━")
_RULES = ("--", "──", "==", "══", "━━")
_RULE_MARKS = frozenset("+|-=: \t").union(map(chr, range(0x2500, 0x2580)))
_BARS = str.maketrans("│┃║", "|||")
_BETWEEN_BARS = re.compile(r"(?<!\\)\|")
_GAP = re.compile(r" {2,}|[ ]*\t\s*|\u3000{2,} *")
FAR = 8
"""Columns that a line is indented, at least, which goes on in a cell of a table that is set with spaces."""
_FEWEST_COLUMNS = 3
_LINE = re.compile(r"[^\n]*\n?")
_PART = re.compile(r"\S+")
FIRST_CELL = re.compile(r"[ \t]*+\|?[ \t]*+([^|\t\n]{1,80}?)[ \t]*+[|\t](?=[^\n]{100})")
CELL = re.compile(r"(?<=[^|\n]{20})(?=\|[ \t])|(?<=[^\t\n]{20})\t|</t[hd]>\s{0,20}+")
"""The first cell of a long row, if it is short and names the row; and where one with some words ends."""
CSV_LINES = 4
"""Lines with as many cells each that are taken for CSV."""


MARKED = re.compile(r"\s*+(\.\. list-table::|\{\||\\begin\{(?:tabular|longtable|array))")
"""The beginning of a table with marks for rows and cells: of reStructuredText, MediaWiki or LaTeX."""
_LATEX = re.compile(
    r"\\\\[^\n]*|\\(?:[hc]line|(?:top|c?mid|bottom)rule|(?:begin|end)\{\w{1,20}\*?\})"
    r"(?:[{\[][^\n]{0,200}[}\]])?"
)
_MARKS = {
    ".. list-table::": (
        re.compile(r"\n(?=[ \t]*[*-] -)"),
        re.compile(r"(?:\A|\n)[ \t]*(?:[*-] )?-(?:[ \t]|(?=\n))"),
    ),
    "{|": (
        re.compile(r"\n(?=[ \t]*\|-)"),
        re.compile(r"\n[ \t]*[|!](?![-}+])(?:[^|\[\]\n]{0,99}\|(?!\|))?|\|\||!!"),
    ),
    "": (re.compile(r"\\\\[^\n]*\n?"), re.compile(r"(?<!\\)&")),
}
"""Where the rows of a form end, and what is before a cell or, in LaTeX, between two."""


class Rows(NamedTuple):
    """Where the n rows of a table start, ascending; the first one where the table does.

    n_head: rows that are its head, at the beginning; 0 without one.
    titles: of each row below it, the name of a group and the cells of the head: "Oil: Option | Meaning".
    """

    starts: tuple[int, ...]
    n_head: int
    titles: tuple[str, ...]


class _Row(NamedTuple):
    start: int
    cells: Cells
    is_marked: bool


def table_rows(text: str, start: int, end: int) -> Rows:
    """Return the rows of a table: Markdown, HTML, CSV, a grid, or set with spaces.

    text, start, end: the table is `text[start:end]`. A row may have several lines. Rules, and rows without
    words, belong to the row before them; those at the beginning to the first row.
    """
    rows_of = _html_rows if _HTML_ROW.search(text, start, end) else _text_rows
    rows_of = _marked_rows if MARKED.match(text, start) else rows_of
    read = list(rows_of(text, start, end))
    rows = [row for row in read if any(row.cells)]
    cells = [row.cells for row in rows]
    begins_group = [False, *(is_over_all(row) and not is_over_all(before) for before, row in pairwise(cells))]
    ends_head = (new or not row.is_marked for new, row in zip(begins_group, rows, strict=False))
    n_marked = next((number for number, is_end in enumerate(ends_head) if is_end), 0)
    n_head = head_size(cells, n_marked, has_empty_head=bool(rows) and rows[0] is not read[0])
    titles = row_titles(cells, n_head, [row.is_marked for row in rows])
    return Rows((start, *(row.start for row in rows[1:])), n_head, tuple(titles))


def is_rule(line: str) -> bool:
    """Check whether a line is drawn between the rows of a table: `+---+`, `|===`, `├──┤` or `=== ===`."""
    return _RULE_MARKS.issuperset(line) and any(mark in line for mark in _RULES)


def csv_cells(lines: Sequence[str]) -> tuple[str, range]:
    """Return the comma or semicolon that parts the cells of each line, and how many a row may have; "", none.

    All have as many as the first line, three at least; or fewer, if that is a head of single words.
    """
    head = lines[0] if lines else ""
    is_head = not any(map(str.isdigit, head)) and " " not in head
    for delimiter in ",;" if ", " not in head and head[-1:] != "," else ";":
        n_cells = len(split_at(delimiter, head))
        may_have = range(_FEWEST_COLUMNS if is_head else n_cells, n_cells + 1)
        if n_cells >= _FEWEST_COLUMNS and all(len(split_at(delimiter, line)) in may_have for line in lines):
            return delimiter, may_have
    return "", range(0)


def split_at(delimiter: str, line: str) -> Cells:
    """Return the cells of a line of CSV; the line itself if it is none."""
    try:
        return tuple(cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), ()))
    except csv.Error:
        return (line,)


def begins_table(first: str, second: str) -> bool:
    """Check whether two lines without space around them begin a table that has rules."""
    if HEAD_RULE.match(second):
        return "|" in first
    return is_rule(first) and (first[0] not in "-=:" or BORDER.match(first) is not None)


def _html_rows(text: str, start: int, end: int) -> Iterator[_Row]:
    starts = [match.start() for match in _HTML_ROW.finditer(text, start, end)]
    rows: list[dict[int, str]] = [{} for _ in starts]
    """The words in each column; a merged cell is in all of its rows and columns."""
    n_left = (end - start) // 4
    """Places in rows that cells may still take: as many as the shortest cells of so long a text."""
    for number, (first, last) in enumerate(pairwise([*starts, end])):
        row, place = rows[number], 0
        found = list(_HTML_CELL.finditer(text, first, last))
        for cell, stop in zip(found, [*(cell.start() for cell in found[1:]), last], strict=False):
            size = {name.lower(): int(span) for name, span in _HTML_SPAN.findall(cell[2])}
            place = next(free for free in count(place) if free not in row)
            columns = range(place, place + min(size.get("col", 1), max(1, n_left)))
            places = dict.fromkeys(columns, without_tags(text[cell.end(2) + 1 : stop]))
            for merged in rows[number : number + size.get("row", 1)][: max(1, n_left // len(places))]:
                merged.update(places)
                n_left -= len(places)
        n_marked = sum(cell[1] in "hH" or cell[3] is not None for cell in found)
        cells = tuple(row.get(place, "") for place in range(max(row, default=-1) + 1))
        yield _Row(first, cells, 2 * n_marked > len(found))


def _marked_rows(text: str, start: int, end: int) -> Iterator[_Row]:
    """The rows of a table in which marks part them, and their cells."""
    found = MARKED.match(text, start)
    form = found[1] if found and found[1] in _MARKS else ""
    row_ends, marks = _MARKS[form]
    places = [start, *(found.end() for found in row_ends.finditer(text, start, end)), end]
    for number, (begin, stop) in enumerate(pairwise(places)):
        row = text[begin:stop] if form else _LATEX.sub("", text[begin:stop])
        cells = marks.split(row)[form != "" :]
        is_named = number == 1 and ":header-rows:" in text[start:begin]
        is_head = is_named or {mark[0].strip()[0] for mark in marks.finditer(row)} == {"!"}
        yield _Row(begin, tuple(" ".join(cell.split()) for cell in cells), is_head)


def _text_rows(text: str, start: int, end: int) -> Iterator[_Row]:
    """The rows between rules; or a row for each line, if the rules are only around the head.

    A line without a first cell goes on with the row before it where a table is drawn with rules, and so does
    one without a gap, and indented far, where gaps are all that parts the cells. Lines above the first rule
    of those are no head if more than one has numbers.
    """
    lines = list(_LINE.finditer(text, start, end))
    first = next((line[0].strip() for line in lines if line[0].strip()), "")
    is_border, is_drawn = BORDER.match(first) is not None, is_rule(first)
    has_blanks_for_rules = is_drawn and "|" not in first[1:] and first[:1] == "|"
    groups: list[list[re.Match[str]]] = [[]]
    n_head = 0
    """Groups of lines that are the head."""
    for line in lines:
        words = line[0].strip()
        if words and not (is_rule(words) or (groups[-1] and HEAD_RULE.match(words) and len(groups) == 1)):
            groups[-1].append(line)
        elif groups[-1] and (words or has_blanks_for_rules):
            n_head = n_head or (0 if _DOUBLE.isdisjoint(words) else len(groups) if is_drawn else 1)
            groups.append([])
    groups = [group for group in groups if group]
    n_head = n_head if n_head < len(groups) else 0
    is_balanced = n_head > 0 or 2 * max(map(len, groups), default=0) <= sum(map(len, groups))
    by_rules = is_drawn and not is_border and len(groups) > n_head + 1 and is_balanced
    cells = groups[0][0][0].strip().strip("|").split("|") if by_rules else []
    is_marked = not (by_rules and first.isascii()) or all(cell[:2] == "  " == cell[-2:] for cell in cells)
    n_head = n_head or int(len(groups) > 1 and is_marked)
    columns = [part.span() for part in _PART.finditer(in_columns(lines[0][0]))] if is_border else []
    delimiter = "" if "|" in first else csv_cells([line[0].strip() for line in lines[:CSV_LINES]])[0]
    far = FAR + min((indent_of(line[0]) for group in groups for line in group), default=0)
    cells_of = partial(_cells, columns=columns, delimiter=delimiter, far=far)
    head = [line for group in groups[:n_head] for line in group]
    is_data = not is_drawn and any(row[0] and has_number(row) for row in map(cells_of, head[1:]))
    n_head = 0 if is_data else n_head
    for number, group in enumerate(groups):
        row: list[re.Match[str]] = []
        for line in group:
            is_parted = "|" in first or delimiter or COLUMNS.match(line[0].strip())
            is_new = (is_parted and not is_drawn) or cells_of(line)[0] != ""
            if row and is_new and not (by_rules or number < n_head):
                yield _row(row[0].start(), [*map(cells_of, row)], is_marked=False)
                row = []
            row.append(line)
        yield _row(row[0].start(), [*map(cells_of, row)], is_marked=number < n_head)


def _row(start: int, parts: Sequence[Cells], *, is_marked: bool) -> _Row:
    if max(map(len, parts)) == 1:
        cells = tuple(part[0] for part in parts)
    else:
        cells = tuple(" ".join(filter(None, column)) for column in zip_longest(*parts, fillvalue=""))
    is_bold = all(cell.startswith(("**", "__")) for cell in cells if cell)
    return _Row(start, cells, is_marked or is_bold)


def _cells(line: re.Match[str], columns: Sequence[tuple[int, int]], delimiter: str, far: int) -> Cells:
    """The cells of a line: between bars, delimiters or wide spaces, or in columns from one place to another.

    A word over several columns is in each of them. Between spaces, a line indented far has no first cell.
    """
    if delimiter:
        return split_at(delimiter, line[0].strip())
    words = line[0].strip().translate(_BARS)
    if columns:
        parts = [*_PART.finditer(in_columns(line[0]))]
        starts, ends = [part.start() for part in parts], [part.end() for part in parts]
        return tuple(
            " ".join(line[0].split()[bisect_right(ends, left) : bisect_left(starts, right)])
            for left, right in [*columns[:-1], (columns[-1][0], 2 * len(line[0]))]
        )
    if "|" in words:
        inner = words.removeprefix("|").removesuffix("|")
        return tuple(cell.strip() for cell in _BETWEEN_BARS.split(inner))
    cells = tuple(_GAP.split(words))
    return ("", *cells) if indent_of(line[0]) >= far else cells
