"""Texts of any format become blocks."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precise_rag.errors import InputError
from precise_rag.sentences import split_sentences
from precise_rag.structure import read_structure
from precise_rag.structure.marks import ends_in_colon, without_marks
from support.documents import read_document
from support.structures import kinds

MARKS = (
    "<table>¦<tr>¦</tr>¦<td>¦<th>¦</td>¦<td rowspan=9>¦<p>¦</p>¦<h2>¦</h2>¦<li>¦<dt>¦<pre>¦<b>¦<!--¦-->¦|¦"
    '|---|\n¦a¦Ann: ¦\n¦\n\n¦\n    ¦  ¦\t¦+--+--+\n¦====\n¦== ==\n¦# ¦- ¦1. ¦(a) ¦> ¦```¦$$¦{¦}¦[¦]¦"¦'
    "\"a\": ¦'b':1¦,¦key: ¦---\n¦A,B,C\n¦On 3 May Ann wrote:\n¦From: a\nTo: b\nDate: c\n¦>>> ¦::\n\n¦"
    ".. code::\n¦[^1]: ¦\u2029¦\r"
)


@given(
    st.text(st.sampled_from("#-*>|`=+.: \n\r\tab1<p/>\u2029") | st.characters(), max_size=200)
    | st.lists(st.sampled_from(MARKS.split("¦")), max_size=60).map("".join),
    st.sampled_from([None, "markdown", "html", "data", "text"]),
)
@example("<table><tr></tr><tr><td>a</td><td>b</td></tr></table>", "html")
def test_blocks_cover_any_text(text: str, text_format: str | None) -> None:
    found = read_structure(text, text_format)
    assert all(isinstance(found.above(block.end - 1), tuple) for block in found.blocks)
    assert "".join(text[start:end] for start, end in split_sentences(text)) == text
    assert "".join(text[block.start : block.end] for block in found.blocks) == text
    assert all(block.start < block.end for block in found.blocks)
    numbers = found.block_numbers(range(len(text))).tolist() if text else []
    assert all(found.blocks[n].start <= at < found.blocks[n].end for at, n in enumerate(numbers))
    assert all(0 <= later - earlier <= 1 for earlier, later in pairwise(numbers))
    with pytest.raises(InputError, match="text_format"):
        read_structure(text, "pdf")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("## Using `with_statement` in **bold** {#id} ##\n", "Using with_statement in bold"),
        ("Title\n=====\n", "Title"),
        ('<h2 class="x">A &lt; B<a href="#">¶</a></h2>', "A < B"),
        (":mod:`json` --- encoder", "json --- encoder"),
        (r"## **mod\_log\_config** \*", "mod_log_config *"),
    ],
)
def test_titles_have_no_marks(heading: str, title: str) -> None:
    assert without_marks(heading) == title


def test_colons_at_the_end_are_known_and_carriage_returns_change_nothing() -> None:
    assert all(map(ends_in_colon, ("Bring:", "**Bring:**\n\n", "<p>Bring:</p>\n", "带来：", "as follows::")))
    assert not any(map(ends_in_colon, ("Bring: oil", "12:30", "Bring.", "")))
    text = "# Eels\n\nThey come.\n\n- oak\n\n| a |\n|---|\n| 1 |\n\nFares::\n\n    3\n"
    for text_format, end in (("markdown", "\r\n"), ("text", "\r")):
        expected = kinds(read_structure(text, text_format))  # type: ignore[arg-type]
        assert kinds(read_structure(text.replace("\n", end), text_format)) == expected  # type: ignore[arg-type]


def test_headings_of_list_items_are_seen_and_versions_stand_above_those_of_their_level() -> None:
    text = "* Methods\n  + ### start\n\n    Starts it.\n"
    assert read_structure(text, "markdown").above(text.index("Starts")) == ("start",)
    release = "## v1.{}.0\n\nThis one is new.\n\n## Fixes\n\n- oil {}\n\n"
    text = "# Log\n\n" + release.format(2, "b") + release.format(1, "a")
    assert read_structure(text).above(text.index("oil a")) == ("Log", "v1.1.0", "Fixes")
    text = text.replace("Fixes", "Fixed", 1)
    assert read_structure(text).above(text.index("oil a")) == ("Log", "Fixes")


def test_a_heading_right_below_html_is_seen() -> None:
    text = "# A\n\n## B\n<table>\n<tr><td>x</td></tr>\n</table>\n## C\nIt is.\n"
    assert read_structure(text, "markdown").above(text.index("It is")) == ("A", "C")


GRID = "+---+---+\n| x | y |\n|===|===|\n| 1 | 2 |\n+---+---+\n| 3 | 4 |\n+---+---+\n"


@pytest.mark.parametrize(
    ("text", "text_format"),
    [
        ('<?xml version="1.0"?>\n<!DOCTYPE html><html><body>Eels</body></html>', "html"),
        ("<!-- made by hand -->\n<!DOCTYPE html><html><body>Eels</body></html>", "html"),
        ("**Default** is `3`, not `4`.\n", "markdown"),
        ("**Default** is ``3``, not ``4``.\n", "text"),
        ("~~~\nlift\n~~~\n\nIt lifts.\n", "markdown"),
        ("Traps\n~~~~~\n\nOf willow.\n\nEels\n~~~~\n\nOf the river.\n", "text"),
        (f"See **PEP 378** and [a](b).\n\n{GRID}", "text"),
    ],
)
def test_the_format_is_told_by_the_marks(text: str, text_format: str) -> None:
    assert read_structure(text).format == text_format


CASES: dict[str, tuple[str | None, str, str]] = {
    "link definitions are lines of code": (
        "markdown",
        "See [oak].\n\n[oak]: https://oak.example/\n[eel]: https://eel.example/\n",
        "paragraph code",
    ),
    "long fences are markdown": (
        None,
        "Tools\n-----\n\n````\nlift --trap\n````\n\n````\nsell\n````\n",
        "heading2 code code",
    ),
    "front matter is no heading": (
        None,
        "---\ntitle: Eels\n---\n# Traps\n\nTwo.\n",
        "code heading1 paragraph",
    ),
    "markdown with tables of tags is markdown": (
        None,
        f"## Fish\n\n<table>{'<tr><td>Eel</td><td>May</td></tr>' * 20}</table>\n\n## Birds\n\nTerns nest.\n",
        "heading2 table heading2 paragraph",
    ),
    "code in an item ends with its indent": (
        "text",
        "* Lift it:\n\n  .. code-block:: sh\n\n     lift --trap\n\n  Then look into it.\n\n* Sell.\n",
        "item1 code item1 item1",
    ),
    "indented code needs no colon before it": (
        "text",
        "This is as if\n\n   except E as N:\n       foo\n\nwas translated to\n\n   f(x)\n\nIt is.\n\n"
        "   He (the man) came.",
        "paragraph code paragraph code paragraph paragraph",
    ),
    "lines with wide gaps are a table": (
        None,
        "Staff:\n\nDeck      120   126\nEngine     88    90\nOffice     90    96\n\nOne.  Two.\nThree.\n",
        "paragraph table paragraph",
    ),
    "prose is paragraphs": (
        None,
        "The lamp is lit.\nIlse keeps it.\n\n“Is it far?” he asked.\n\nA mile.\n",
        "paragraph paragraph paragraph",
    ),
    "a title between two lines is a heading": (
        None,
        "------------\n lift --all \n------------\n\nThey are closed again.\n",
        "heading1 paragraph",
    ),
    "html has long paragraphs": (
        None,
        f"<h2>Eels</h2>\n\n<p>{'They come in May. ' * 90}</p>\n\n" * 3,
        " ".join(["heading2 paragraph"] * 3),
    ),
    "html": (
        None,
        "<html><head><style>h1 {x: y}</style></head><body><h1>Eels</h1><p>In May.</p>"
        "<ul><li>oak<li>wicker <ol><li>new</li></ol></li></ul><h2>Code</h2><p>So:</p><pre>a\n\nb</pre>"
        "<table><tr><td>1</td></tr><tr><td>2</td></tr></table><blockquote>Quoted</blockquote>End</body>",
        "heading1 paragraph item1 item1 item2 heading2 paragraph code table quote paragraph",
    ),
    "closing tags belong to the block before": (
        "html",
        "<div><ul>\n<li>oak</li>\n</ul>\n</div>\n\n<div><p>End</p></div>\n",
        "item1 paragraph",
    ),
    "numbered sentences of markdown are items": (
        "markdown",
        "1. Go aboard.\n\nThen sit.\n\n2. Pay.\n\nEnd.\n",
        "item1 paragraph item1 paragraph",
    ),
    "a chunk may begin within code": (
        "markdown",
        "  return x\n}\n```\n\n## Traps\n\nOf willow.\n\n```js\ng(x)\n```\n\nAgain.\n",
        "code heading2 paragraph code paragraph",
    ),
    "rows set with spaces are a table, and prose with one gap is not": (
        "markdown",
        "Yeast   1.10\nFlour   2.20\nSalt   0.40\n\nBread needs flour,\nyeast   and water.\nIt rises.\n",
        "table paragraph",
    ),
    "code of which only the beginning is there": ("markdown", "```\nlift\n", "code"),
    "doctest is one block of code": (
        "text",
        "So:\n\n   >>> try:\n   ...     pass\n   ... finally:\n   ...     f(x)\n   ...\n   None\n\nThe end.",
        "paragraph code paragraph",
    ),
    "terms and options are items with their meaning": (
        "text",
        "Fields:\n\n``a``\n  The first.\n``b``\n  The second.\n\n-q\n   No noise.\n-d\n   More.",
        "paragraph item1 item1 item1 item1",
    ),
    "each kind of marks is a level, and a section of settings is a heading": (
        "text",
        "(1) No oil unless—\n(a) it burns;\n(i) or smokes;\n\n(b) it is old.\n\n(2) End.\n\n[a]\nb = 3\n",
        "item1 item2 item3 item2 item1 heading20 paragraph",
    ),
    "notes are no transcript": (
        None,
        "Note: this.\n\n" + "One paragraph.\n\n" * 9 + "Note: that.\n\nNote: more.\n\nNote: last.\n",
        " ".join(["paragraph"] * 13),
    ),
    "prose with commas is no table": (
        None,
        "He came, he saw, he left.\nShe came, too, later.\n" * 3,
        "paragraph",
    ),
    "long scripts are code": (
        None,
        f"<html><body><p>Eels.</p><script>{'x = 1; ' * 60}</script><p>Oak.</p></body></html>",
        "paragraph code paragraph",
    ),
    **{
        f"a formula in {text_format} is one block": (
            text_format,
            "The sum is\n\n$$\na = b. C = d.\n$$\n\nwhere a is large.",
            "paragraph code paragraph",
        )
        for text_format in ("markdown", "text")
    },
}


@pytest.mark.parametrize("case", CASES)
def test_the_blocks_have_their_kinds(case: str) -> None:
    text_format, text, expected = CASES[case]
    assert " ".join(kinds(read_structure(text, text_format))) == expected


def test_markdown_also_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    document = read_document("estuary.md")
    found = read_structure(document)
    assert found.format == "markdown"
    assert kinds(found) == [
        *("heading1", "paragraph", "item1", "item1", "item2", "item1", "code", "quote", "table"),
        *("heading6", "paragraph", "heading2", "heading3"),
    ]
    path = found.above(document.index("Nothing"))
    assert path == ("Eels of the Brandt estuary", "In winter")
    assert found.above(document.index("Setext")) == ("Eels of the Brandt estuary",)
    text = f"{document}\n" * 9
    whole = read_structure(text).blocks
    monkeypatch.setattr("precise_rag.structure.markdown._PART", 700)
    assert read_structure(text).blocks == whole


def test_numbered_titles_of_markdown() -> None:
    text = "# Ferry\n\n1. Boarding\n\nGo aboard.\n\n2. Fares\n\n- three for a zone\n\n1. pay\n2. sit down\n"
    found = read_structure(text, "markdown")
    assert kinds(found) == ["heading1", "heading6", "paragraph", "heading6", "item1", "item1", "item1"]
    assert found.above(text.index("- three")) == ("Ferry", "2. Fares")
