"""Where tables of plain text end: drawn with rules and bars, set with spaces or tabs, or CSV."""

import re
from collections.abc import Callable, Sequence

from precise_rag.structure.heads import has_number
from precise_rag.structure.marks import CODE_LINE, COLUMNS, FEWEST_ROWS, STOPS
from precise_rag.structure.plain_lines import Line, edges_of
from precise_rag.structure.tables import CSV_LINES, FAR, MARKED, begins_table, csv_cells, is_rule, split_at

LONGEST_CELL = 60
"""Characters of a cell on a line of its own, and of the name of a group of rows."""
_TABLE_AHEAD = 500
"""Lines in which the end of a simple table is looked for."""
_SPACED_BARS = re.compile(r"[^|]*[ \t]\|(?:[ \t][^|]*[ \t]\|)++(?:[ \t][^|]*)?\Z")
_WIDE_GAP = re.compile(r" {3,}|\t")
_NUMBER_CELL = re.compile(r"(?: {3}|\t)(?:[^\w\s] {0,3})?\d")


def table_end(lines: Sequence[Line], number: int) -> int:
    """Return the end of the table that begins at a line, two lines below or more; the line itself if none."""
    line, below = lines[number], lines[number + 1 : number + 2]
    words = line.words
    if form := MARKED.match(words):
        end = _marked_end(lines, number, form[1])
    elif begins_table(words, below[0].words if line.after_blank and not line.before_blank else ""):
        if is_rule(words) and "|" not in words[1:] and words[0] in "=|":
            end = _rule_end(lines, number)
        else:
            end = run_end(lines, number, lambda row: row[0] in "│┃║" or "|" in row or is_rule(row))
    elif words.count("\t") > 1 and line.after_blank:
        end = run_end(lines, number, lambda row: row.count("\t") > 1)
    elif ("   " in words or "\t" in words) and COLUMNS.match(words) and not CODE_LINE.match(words):
        end = _columns_end(lines, number)
    elif _SPACED_BARS.match(words):
        end = run_end(lines, number, lambda row: row.count("|") == words.count("|"))
        end = end if end - number >= FEWEST_ROWS else number
    elif may_have := (csv := _csv(lines, number))[1]:
        end = run_end(lines, number, lambda row: len(split_at(csv[0], row)) in may_have)
    else:
        end = number
    return end if end - number > 1 else number


def run_end(lines: Sequence[Line], number: int, is_row: Callable[[str], bool]) -> int:
    """The end of the lines from `number` on that are rows, without a blank line between them."""
    end = number + 1
    while end < len(lines) and not lines[end].after_blank and is_row(lines[end].words):
        end += 1
    return end


def _csv(lines: Sequence[Line], number: int) -> tuple[str, range]:
    """What parts the cells of CSV that begins at a line, and how many a row may have; "", none."""
    first, *below = lines[number : number + CSV_LINES]
    is_run = len(below) == CSV_LINES - 1 and not any(line.after_blank for line in below)
    return csv_cells([line.words for line in (first, *below) if first.after_blank and is_run])


def _columns_end(lines: Sequence[Line], number: int) -> int:
    """The end of a table that is set with spaces, also with a rule below its head.

    A row has a column, or the number of its cells, of the row before. A line that is indented far goes on
    in a cell. A blank line may part rows with the same columns, and rules any. If right below the head a
    line names a group of rows, others may.
    """
    first, end, n_rows = lines[number], number + 1, 1
    edges, n_gaps = edges_of(first), len(_WIDE_GAP.findall(first.words))
    below = end + (end < len(lines) and is_rule(lines[end].words))
    is_grouped = not has_number(_WIDE_GAP.split(first.words)) and _names_rows(lines, below)
    for line in lines[end:]:
        is_wide = (len(line.words) > FAR and "|" not in line.words) or end == number + 1
        if is_wide and is_rule(line.words) and not line.after_blank:
            end += 1
            continue
        now = edges_of(line) if COLUMNS.match(line.words) else set[int]()
        n_now = len(_WIDE_GAP.findall(line.words))
        is_second = n_rows == 1  # below a head, which may have a cell more or less
        has_cells = n_now > 1 and n_gaps + is_second > 1 and abs(n_now - n_gaps) <= is_second
        has_cells = has_cells and _NUMBER_CELL.search(line.words) is not None
        n_gaps = n_now if has_cells else n_gaps
        is_row = has_cells or not edges.isdisjoint(now)
        goes_on = is_row or line.indent >= first.indent + FAR
        if line.after_blank:
            is_beside = is_grouped or line.indent == first.indent
            goes_on = is_row and is_beside and (has_cells or len(edges & now) > 1)
        if is_grouped and not goes_on:
            goes_on = line.indent <= lines[below].indent and _names_rows(lines, end)
        if not goes_on:
            break
        edges = now if is_row else edges
        n_rows += is_row
        end += 1
    return end if n_rows >= FEWEST_ROWS else number


def _names_rows(lines: Sequence[Line], number: int) -> bool:
    """Whether a short line names a group of rows: above one of three cells, or above such a name."""
    words, *below = [line.words for line in lines[number : number + 3]] or [""]
    cells = next((_WIDE_GAP.split(row) for row in below if COLUMNS.match(row)), [])
    is_alone = len(words) <= LONGEST_CELL and not (words.endswith(STOPS) or COLUMNS.match(words))
    is_above = len(cells) >= FEWEST_ROWS and has_number(cells) and not lines[number].before_blank
    return is_above and is_alone and not is_rule(words)


def _marked_end(lines: Sequence[Line], number: int, form: str) -> int:
    """The end of a table with marks for rows and cells: a line that closes it, or is not indented more."""
    closing = {"{|": "|}", ".. list-table::": ""}.get(form, r"\end{")
    for end in range(number + 1, min(len(lines), number + _TABLE_AHEAD)):
        if closing and lines[end].words.startswith(closing):
            return end + 1
        if not closing and lines[end].indent <= lines[number].indent:
            return end
    return number if closing else min(len(lines), number + _TABLE_AHEAD)


def _rule_end(lines: Sequence[Line], number: int) -> int:
    """The end of a table that ends with a rule as its first line; it may have blank lines."""
    marks = set(lines[number].words)
    for end in range(number + 1, min(len(lines), number + _TABLE_AHEAD)):
        if lines[end].before_blank and marks == set(lines[end].words):
            return end + 1
    return number
