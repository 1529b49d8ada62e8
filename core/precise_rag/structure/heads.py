"""How many rows of a table are its head, by their cells, and the titles above the other rows."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile, zip_longest

from precise_rag.structure.marks import CAPTION, ends_sentence, without_marks

Cells = tuple[str, ...]
"""The words of the cells of a row; "" of an empty one."""
_LONGEST_HEAD, _LONGEST_TITLE, _LONGEST_CAPTION, _LINES_OF_CAPTION = 400, 200, 100, 3
_READ = 30
"""Rows below the head that are looked at, and rows of the head itself."""
_NUMBER = re.compile(r"\W{0,3}(?!(?:19|20)\d\d\b)\d")
"""The beginning of a cell with a number, but not a year."""
_NAME = re.compile(r"[^\W\d_]|(?:19|20)\d\d\b")


def head_size(rows: Sequence[Cells], n_marked: int, *, has_empty_head: bool) -> int:
    """Return how many rows, from the first one on, are the head; 0 without one.

    n_marked: rows that are marked as the head. They are none if they have numbers as the rows below.
    has_empty_head: whether a row without words is marked as the head, as some programs write above any table.
    A row that is not marked is the head if it has no number, but most rows below have some in a column; or if
    it has words only, which are not repeated in a column where others are.
    A table of two columns has a head only if that holds in both, so that labels and values have none.
    Below merged cells the head goes on until its columns differ.
    """
    if n_marked:
        size = 0 if _is_data(rows[n_marked - 1], rows[n_marked:]) else n_marked
    else:
        n_over = sum(1 for _ in takewhile(is_over_all, rows))
        is_head = n_over + 1 < len(rows) and _is_head(rows[n_over], rows[n_over + 1 :], has_empty_head)
        size = n_over + 1 if is_head else 0
    while 0 < size < min(len(rows) - 1, _READ) and _goes_on(rows[:size], rows[size], rows[size + 1 :]):
        size += 1
    return size


def caption(paragraph: str) -> str:
    """Return up to three short lines above a table, without marks and colon; "" of a sentence or of cells."""
    lines = paragraph.strip().split("\n")
    are_short = len(lines) <= _LINES_OF_CAPTION and max(map(len, lines)) <= _LONGEST_CAPTION
    is_caption = CAPTION.match(lines[0]) or not (" | " in paragraph or any(map(ends_sentence, lines)))
    return without_marks(paragraph).rstrip(":：")[:_LONGEST_TITLE] if are_short and is_caption else ""


def row_titles(rows: Sequence[Cells], n_head: int, are_marked: Sequence[bool]) -> Iterator[str]:
    """Yield the title of each row below the head: the name of its group, and the head, "Option | Meaning".

    A row with one filled cell, or the same in all, names the rows below it: if the next has no first cell,
    if it is merged, or if the table begins so and is full otherwise. Without such rows, and if half of the
    rows have no first cell, the first cell of a row names the rows without one.
    """
    over = [row[0] for row in rows[:n_head] if is_over_all(row)]
    columns = " | ".join(_columns(rows[:n_head])).rstrip(" |")
    name = "" if columns else ": ".join(over)
    title = ": ".join([*over, columns])[:_LONGEST_HEAD] if columns else ""
    for row, is_name in zip(rows[n_head:], _are_names(rows[n_head:], are_marked[n_head:]), strict=True):
        name = without_marks(row[0]).rstrip(":：")[:_LONGEST_TITLE] if is_name else name
        yield ": ".join(filter(None, [name if not is_name and _NAME.search(name) else "", title]))


def _are_names(rows: Sequence[Cells], are_marked: Sequence[bool]) -> list[bool]:
    n_columns = max(map(len, rows), default=0)
    full = [len(row) == n_columns and all(row) for row in rows]
    over = [
        n_columns > (1 if is_marked else 2) and is_over_all((*row, ""))
        for row, is_marked in zip(rows, are_marked, strict=True)
    ]
    begins = over[:1] == [True] and 2 * sum(full) > over.count(False)
    firsts = [any(row[:1]) for row in rows]
    names = [
        is_over and not is_next and (begins or is_full or not below)
        for (is_over, is_next), is_full, below in zip(pairwise(over), full, firsts[1:], strict=False)
    ]
    if not any(names) and 2 * sum(firsts) <= len(rows):
        return firsts
    return [*names, False][: len(rows)]


def _columns(head: Sequence[Cells]) -> list[str]:
    """The words above each column; an empty cell that is not in the last row belongs to the one before it."""
    rows = [list(row) for row in head[:_READ] if not is_over_all(row)]
    for row in rows[:-1]:
        for place in range(1, len(row)):
            row[place] = row[place] or row[place - 1]
    columns = [" ".join(dict.fromkeys(filter(None, column))) for column in zip_longest(*rows, fillvalue="")]
    return [without_marks(column) or column for column in columns]


def is_over_all(row: Cells) -> bool:
    """Whether a row has one text, over all columns."""
    return len(row) > 1 and bool(row[0]) and set(row[1:]) <= {row[0], ""}


def has_number(row: Sequence[str]) -> bool:
    """Whether a cell of a row begins with a number that is not a year."""
    return any(map(_NUMBER.match, row))


def _columns_of_numbers(row: Cells, below: Sequence[Cells]) -> list[bool]:
    """Whether most cells below each cell of a row have numbers."""
    found = []
    for place in range(len(row)):
        filled = [other[place] for other in below[:_READ] if place < len(other) and other[place]]
        found.append(2 * sum(has_number((cell,)) for cell in filled) > len(filled))
    return found


def _is_data(row: Cells, below: Sequence[Cells]) -> bool:
    if not has_number(row) or is_over_all(row):
        return False
    if len(row) == 2:
        return not _columns_of_numbers(row, below)[0]
    return all(any(map(str.isdigit, cell)) for cell in row if cell)


def _is_head(row: Cells, below: Sequence[Cells], has_empty_head: bool) -> bool:
    numbers = _columns_of_numbers(row, below)
    if has_number(row) or len(row) < 3:
        return all(numbers) and not has_number(row)
    if any(cell and is_number for cell, is_number in zip(row, numbers, strict=True)):
        return True
    columns = [[other[place] for other in below[:_READ] if place < len(other)] for place in range(len(row))]
    is_new = all(cell and cell not in column for cell, column in zip(row, columns, strict=True))
    return is_new and (has_empty_head or any(2 * len(set(column)) <= len(column) for column in columns))


def _goes_on(head: Sequence[Cells], row: Cells, below: Sequence[Cells]) -> bool:
    columns = _columns(head)
    is_told_apart = len(columns) > 0 and all(columns[1:]) and len(set(columns)) == len(columns)
    if is_told_apart or has_number(row):
        return False
    is_merged = any(cell and cell == above for cell, above in zip(row, head[-1], strict=False))
    return is_merged or any(_columns_of_numbers(row, below))
