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


@pytest.mark.parametrize(
    ("table", "head", "rows"),
    [
        (GRID, "Option | Meaning of it", ["to the left", "to the right"]),
        (SIMPLE, "A | not A", ["or so", "True   False"]),
        (MARKDOWN, "a | b", ["| 1 | 2 |", "| 3 | 4 |"]),
        (SPACES, "Preset | Size | Memory", ["256 KiB", "9 MiB"]),
        (HTML, "Name | Use", ["<td>b</td>"]),
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
    for without in ("| 1 | 2 |\n| 3 | 4 |\n", "a\tb\n", "\n", "+--+\n"):
        assert table_head(without, 0, len(without)) == (0, "")


def test_the_head_stands_above_the_rows_of_a_long_table_only() -> None:
    rows = "".join(f"| o{number} | sets the pump to the speed {number} |\n" for number in range(20))
    text = f"# Pump\n\nText.\n\n| option | meaning |\n|---|---|\n{rows}\nAfter.\n\n{MARKDOWN}"
    structure = read_structure(text)
    assert structure.above(text.index("| o7")) == ("Pump", "option | meaning")
    assert structure.above(text.index("| option")) == ("Pump",)
    assert structure.above(text.index("After")) == ("Pump",)
    assert structure.above(text.index("| 1 |")) == ("Pump",)
