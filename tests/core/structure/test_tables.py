import time

import pytest

from precise_rag.structure import read_structure
from precise_rag.structure.tables import table_head, table_rows

GRID = """\
+--------+----------------+
| Option | Meaning        |
|        | of it          |
|========|================|
| "<"    | to the left,   |
|        | at once        |
+--------+----------------+
| ">"    | to the right   |
+--------+----------------+
"""
SIMPLE = """\
=====  =====
A      not A
=====  =====
False  True
       or so
True   False
=====  =====
"""
MARKDOWN = "| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 | 4 |\n"
SPACES = "  Preset   Size   Memory\n    -0   256 KiB     3 MiB\n    -1     1 MiB     9 MiB\n"
HTML = "<table>\n <tr><th>Name</th><th>Use</th></tr>\n <tr><td>a</td>\n <td>b</td></tr>\n</table>\n"
ASCIIDOC = "|===\n|Name |Value\n\n|a |1\n|b |2\n|===\n"
LIST = """\
.. list-table:: Sweets
   :widths: 10 20
   :header-rows: 1

   * - Sweet
     - What it is
       made of
   * - Frog
     - Frogs, finest,

       and cream
   * - Ripple
     - Gannet
"""
CSV_DIRECTIVE = """\
.. csv-table:: Sweets
   :header: "Sweet", "Made of, mostly"

   "Frog", "frogs, finest,
   and cream"
   "Ripple", gannet
"""
CSV_WITH_HEAD_ROW = ".. csv-table::\n   :header-rows: 1\n\n   Sweet, Price\n   Frog, 1.49\n   Ripple, 1.99\n"
CSV = "name,price,maker\n" + "".join(f'Sweet {n},{n}.49,"Frog, Ltd."\n' for n in range(4))
SEMICOLONS = "name;price;maker\n" + "".join(f"Sweet {n};{n},49;Frog\n" for n in range(4))
CELLS = "|===\n|Name\n|Value\n\n|a\n|1\n\n|b\n|2\n|===\n"


@pytest.mark.parametrize(
    ("table", "head", "rows"),
    [
        (GRID, "Option | Meaning of it", ["to the left", "to the right"]),
        (SIMPLE, "A | not A", ["or so", "True   False"]),
        (MARKDOWN, "a | b", ["| 1 | 2 |", "| 3 | 4 |"]),
        (SPACES, "Preset | Size | Memory", ["256 KiB", "9 MiB"]),
        (HTML, "Name | Use", ["<td>b</td>"]),
        (LIST, "Sweet | What it is made of", ["and cream", "Gannet"]),
        (CSV_DIRECTIVE, "Sweet | Made of, mostly", ["and cream", "gannet"]),
        (CSV_WITH_HEAD_ROW, "Sweet | Price", ["1.49", "Ripple"]),
        (CSV, "name | price | maker", ["Sweet 0", "1.49", "Sweet 2", "3.49"]),
        (SEMICOLONS, "name | price | maker", ["Sweet 0", "1,49", "Sweet 2", "3,49"]),
        (ASCIIDOC, "Name | Value", ["|a |1", "|b |2"]),
        (CELLS, "Name Value", ["|a\n|1", "|b\n|2"]),
    ],
)
def test_rows_and_the_head_of_a_table_are_read(table: str, head: str, rows: list[str]) -> None:
    text = "Before.\n" + table
    found = table_rows(text, 8, len(text))
    assert found.n_head == 1
    assert found.starts[0] == 8
    parts = [text[a:b] for a, b in zip(found.starts, [*found.starts[1:], len(text)], strict=True)]
    assert len(parts) == 1 + len(rows)
    assert all(part in found_part for part, found_part in zip(rows, parts[1:], strict=True))
    assert table_head(text, 8, len(text)) == (found.starts[1], head)


@pytest.mark.parametrize("table", ["| 1 | 2 |\n| 3 | 4 |\n", "a\tb\n", "|===\n|===\n", "\n", "+--+\n"])
def test_a_table_without_a_head_has_no_title(table: str) -> None:
    assert table_head(table, 0, len(table)) == (0, "")


def test_the_head_stands_above_the_rows_of_a_long_table_only() -> None:
    rows = "".join(f"| o{number} | sets the pump to the speed {number} |\n" for number in range(20))
    text = f"# Pump\n\nText.\n\n| option | meaning |\n|---|---|\n{rows}\nAfter.\n\n{MARKDOWN}"
    structure = read_structure(text)
    assert structure.above(text.index("| o7")) == ("Pump", "option | meaning")
    assert structure.above(text.index("| option")) == ("Pump",)
    assert structure.above(text.index("After")) == ("Pump",)
    assert structure.above(text.index("| 1 |")) == ("Pump",)
    assert structure.heading_path(text.index("| o7")) == ("Pump",)


def test_listed_cells_are_read_as_tables() -> None:
    text = f"The sweets are these.\n\n{LIST}\nAnd others:\n\n{CSV_DIRECTIVE}\nIn a file:\n\n{CSV}\nThe end.\n"
    kinds = [block.kind for block in read_structure(text).blocks]
    assert kinds == ["paragraph", "table", "paragraph", "table", "paragraph", "table", "paragraph"]


def test_prose_with_commas_is_no_table() -> None:
    lines = "He came, he saw, he left.\nShe came, too, later.\n" * 3
    assert {block.kind for block in read_structure(lines).blocks} == {"paragraph"}


@pytest.mark.parametrize("unit", ["a,b,c\n", ",,,", 'a,"b,c\n', "   * - a\n"])
def test_listed_cells_are_read_in_linear_time(unit: str) -> None:
    def seconds(size: int) -> float:
        text = ".. list-table::\n\n" * (unit[0] == " ") + unit * size
        return min(_seconds(text) for _ in range(3))

    assert seconds(16_000) < 40 * max(seconds(1_000), 0.001)


def _seconds(text: str) -> float:
    started = time.process_time()
    read_structure(text, "text")
    return time.process_time() - started
