from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.errors import InputError
from precise_rag.structure import Structure, read_structure
from precise_rag.structure.marks import ends_in_colon, without_marks
from precise_rag.structure.running import running_lines

MARKDOWN = """\
# Eels of the *[Brandt](brandt.md)* estuary

The eels come in May. They leave
in June.

- the first trap

  has a lid
  1. a hook
- the second trap:
  ```text
  oak

  wicker
  ```

> Ilse counts them.

| trap | eels |
|------|------|
| oak  | 7    |

**In winter**

Nothing moves.

Setext
------
<h3>By hand</h3>
"""

UNDERLINED = """\
******
Ferry
******

Fares are listed as follows::

    fare = 3 * zones

Tickets
=======

=====  ====
zone   fare
=====  ====
1      3
=====  ====

1. Board.

2. Sit down,
   please.

Refunds
=======
.. code-block:: python

   refund(3)

   wait()

Done.
"""

PLAIN = """\
2. Duties of the keeper

The keeper lights the lamp at dusk and puts it out at dawn, every day of the year.

2.1 Oil

Bring:

- oil
- a cloth

THE FERRY

It sails at nine from the east pier, and comes back at noon if there is no fog at all.

Old timetable

It sailed at eight from the west pier, and came back at noon if there was no fog at all.
"""

TRANSCRIPT = (
    "Ilse: The lamp is lit.\nJonas B: Is it? I saw\nno light.\nIlse: Look again.\n\nJonas B: Now I do.\n"
)

HTML = (
    "<html><head><style>h1 {x: y}</style></head><body><h1>Eels &amp; lamps</h1><p>In May.</p>"
    "<ul><li>oak<li>wicker <ol><li>new</li></ol></li></ul><h2>Code</h2><p>As follows:</p><pre>a\n\nb</pre>"
    "<table><tr><td>1</td></tr><tr><td>2</td></tr></table><blockquote>Quoted</blockquote>End</body></html>"
)


def kinds(structure: Structure) -> list[str]:
    return [block.kind + (str(block.level) if block.level else "") for block in structure.blocks]


def starting(text: str, words: str) -> int:
    return text.index(words)


def test_markdown() -> None:
    found = read_structure(MARKDOWN)
    assert found.format == "markdown"
    assert kinds(found) == [
        *("heading1", "paragraph", "item1", "item1", "item2", "item1", "code", "quote", "table"),
        *("heading6", "paragraph", "heading2", "heading3"),
    ]
    path = found.heading_path(starting(MARKDOWN, "Nothing"))
    assert path == ("Eels of the Brandt estuary", "In winter")
    assert found.heading_path(starting(MARKDOWN, "Setext")) == ("Eels of the Brandt estuary",)


def test_numbered_titles_of_markdown() -> None:
    text = "# Ferry\n\n1. Boarding\n\nGo aboard.\n\n2. Fares\n\n- three for a zone\n\n1. pay\n2. sit down\n"
    found = read_structure(text, "markdown")
    assert kinds(found) == ["heading1", "heading6", "paragraph", "heading6", "item1", "item1", "item1"]
    assert found.heading_path(starting(text, "- three")) == ("Ferry", "2. Fares")
    assert "heading" not in kinds(
        read_structure("1. Go aboard.\n\nThen sit.\n\n2. Pay.\n\nEnd.\n", "markdown")
    )


def test_link_definitions_are_lines_of_code() -> None:
    text = "See [oak].\n\n[oak]: https://oak.example/\n[eel]: https://eel.example/\n"
    assert kinds(read_structure(text, "markdown")) == ["paragraph", "code"]


def test_long_fences_are_markdown() -> None:
    text = "Tools\n-----\n\n````\nlift --trap\n````\n\n````\nsell\n````\n"
    assert kinds(read_structure(text)) == ["heading2", "code", "code"]


def test_front_matter_is_no_heading() -> None:
    assert kinds(read_structure("---\ntitle: Eels\n---\n# Traps\n\nTwo.\n")) == [
        "code",
        "heading1",
        "paragraph",
    ]


def test_underlined_text_and_directives() -> None:
    found = read_structure(UNDERLINED)
    assert found.format == "text"
    assert kinds(found) == [
        *("heading1", "paragraph", "code", "heading2", "table", "item1", "item1"),
        *("heading2", "code", "paragraph"),
    ]
    assert found.heading_path(starting(UNDERLINED, "Done")) == ("Ferry", "Refunds")


def test_code_in_an_item_ends_with_its_indent() -> None:
    text = "* Lift it:\n\n  .. code-block:: sh\n\n     lift --trap\n\n  Then look into it.\n\n* Sell.\n"
    assert kinds(read_structure(text, "text")) == ["item1", "code", "item1", "item1"]


def test_running_heads_are_no_headings() -> None:
    page = "Harbour of Brandt\n\nThe lamp is lit at dusk and put out at dawn, on every day of the year.\n\n"
    assert kinds(read_structure(page, "text")) == ["heading20", "paragraph"]
    assert "heading20" not in kinds(read_structure(page * 3, "text"))


@pytest.mark.parametrize(
    "lines",
    [
        ("Harbour of Brandt", "Harbour of Brandt", "Harbour of Brandt"),
        ("Harbour of Brandt | 7", "8 – Harbour of Brandt", "Harbour of Brandt, page 9"),
        ("Harbour of Brandt 7", "Harbour of Brandt 9", "Harbour of Brandt"),
        ("7", "- 8 -", "Page 9"),
        ("Seite 7 von 12", "7 / 12", "стр. 8"),
    ],
)
def test_running_lines_differ_by_the_number_of_the_page(lines: tuple[str, ...]) -> None:
    assert running_lines([*lines, "The lamp is lit."]) == [True, True, True, False]
    assert not any(running_lines(lines[:2]))


@pytest.mark.parametrize(
    "lines",
    [("Chapter 1", "Chapter 2", "Chapter 3"), ("Yes.",) * 4, ("Notes:",) * 4, ("* * *",) * 4, ("",) * 4],
)
def test_titles_sentences_and_signs_are_no_running_lines(lines: tuple[str, ...]) -> None:
    assert not any(running_lines(lines))


def test_plain_text() -> None:
    found = read_structure(PLAIN)
    assert [kind[:4] for kind in kinds(found)] == [
        *("head", "para", "head", "para", "item", "item", "head", "para", "head", "para"),
    ]
    assert found.heading_path(starting(PLAIN, "- oil")) == ("2. Duties of the keeper", "2.1 Oil")
    assert found.heading_path(starting(PLAIN, "It sailed")) == ("THE FERRY", "Old timetable")


@pytest.mark.parametrize(
    "line", ["“No,” Ilse said. “Not yet.”", "7. Light the lamp. Then eat.", "Chapter and verse,", "I. I did"]
)
def test_sentences_are_no_headings(line: str) -> None:
    assert "heading" not in kinds(read_structure(f"Before it.\n\n{line}\n\nafter it, in small letters.\n"))


def test_turns_of_a_transcript() -> None:
    found = read_structure(TRANSCRIPT)
    assert kinds(found) == ["turn"] * 4
    assert TRANSCRIPT[found.blocks[1].start :].startswith("Jonas B: Is it?")
    notes = (
        "Note: this.\n\n"
        + "One paragraph. Of several.\n\n" * 9
        + "Note: that.\n\nNote: more.\n\nNote: last.\n"
    )
    assert "turn" not in kinds(read_structure(notes))


def test_lines_that_nobody_says_are_titles_of_a_transcript() -> None:
    said = "Ilse: Look at the oil, please\n\nJonas B: I did.\n\n"
    text = f"{said * 2}What the oil costs\n\n{said}He left.\n\n{said}and more\n\n{said}Wicks, etc.\n\n{said}"
    found = read_structure(text)
    assert [text[block.start : block.end] for block in found.blocks if block.kind == "heading"] == [
        "What the oil costs\n\n",
        "Wicks, etc.\n\n",
    ]
    assert found.heading_path(text.index("He left")) == ("What the oil costs",)


def test_html_of_long_paragraphs() -> None:
    part = f"<h2>Eels</h2>\n\n<p>{'They come in May. ' * 90}</p>\n\n"
    assert kinds(read_structure(part * 3)) == ["heading2", "paragraph"] * 3


def test_markdown_with_tables_of_tags_is_markdown() -> None:
    table = f"<table>{'<tr><td>Eel</td><td>May</td></tr>' * 20}</table>"
    found = read_structure(f"## Fish\n\n{table}\n\n## Birds\n\nTerns nest here.\n")
    assert kinds(found) == ["heading2", "table", "heading2", "paragraph"]


@pytest.mark.parametrize("before", ['<?xml version="1.0"?>\n', "<!-- made by hand -->\n", "\n"])
def test_a_prolog_begins_html(before: str) -> None:
    assert read_structure(f"{before}<!DOCTYPE html><html><body>Eels</body></html>").format == "html"


def test_html() -> None:
    found = read_structure(HTML)
    assert found.format == "html"
    assert kinds(found) == [
        *("heading1", "paragraph", "item1", "item1", "item2", "heading2", "paragraph", "code", "table"),
        *("quote", "paragraph"),
    ]
    assert found.heading_path(HTML.index("<pre>")) == ("Eels & lamps", "Code")


def test_closing_tags_belong_to_the_block_before() -> None:
    text = "<div><ul>\n<li>oak</li>\n</ul>\n</div>\n\n<div><p>End</p></div>\n"
    found = read_structure(text, "html")
    assert [text[block.start : block.end] for block in found.blocks] == [
        "<div><ul>\n<li>oak</li>\n</ul>\n</div>\n\n",
        "<div><p>End</p></div>\n",
    ]


def test_prose_is_paragraphs() -> None:
    text = "The lamp is lit.\nIlse keeps it.\n\n“Is it far?” he asked.\n\nA mile.\n"
    assert kinds(read_structure(text)) == ["paragraph"] * 3


@given(
    st.text(st.sampled_from("#-*>|`=+.: \n\r\tab1<p/>\u2029") | st.characters(), max_size=200),
    st.sampled_from([None, "markdown", "html", "text"]),
)
def test_blocks_cover_any_text(text: str, text_format: str | None) -> None:
    found = read_structure(text, text_format)
    assert "".join(text[block.start : block.end] for block in found.blocks) == text
    assert all(block.start < block.end for block in found.blocks)
    numbers = found.block_numbers(range(len(text))).tolist() if text else []
    assert all(found.blocks[n].start <= at < found.blocks[n].end for at, n in enumerate(numbers))
    assert all(0 <= later - earlier <= 1 for earlier, later in pairwise(numbers))


def test_carriage_returns_change_nothing() -> None:
    assert kinds(read_structure(MARKDOWN.replace("\n", "\r\n"))) == kinds(read_structure(MARKDOWN))
    assert kinds(read_structure(UNDERLINED.replace("\n", "\r"))) == kinds(read_structure(UNDERLINED))


def test_long_markdown_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{MARKDOWN}\n" * 9
    whole = read_structure(text).blocks
    monkeypatch.setattr("precise_rag.structure.markdown._PART", 700)
    assert read_structure(text).blocks == whole


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="text_format"):
        read_structure("a", "pdf")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("## Using `with_statement` in **bold** {#id} ##\n", "Using with_statement in bold"),
        ("Title\n=====\n", "Title"),
        ('<h2 class="x">A &lt; B<a href="#">¶</a></h2>', "A < B"),
        (":mod:`json` --- encoder", "json --- encoder"),
    ],
)
def test_titles_have_no_marks(heading: str, title: str) -> None:
    assert without_marks(heading) == title


def test_colons_at_the_end() -> None:
    assert all(map(ends_in_colon, ("Bring:", "**Bring:**\n\n", "<p>Bring:</p>\n", "带来：", "as follows::")))
    assert not any(map(ends_in_colon, ("Bring: oil", "12:30", "Bring.", "")))


def test_long_scripts_are_code() -> None:
    script = f"<script>{'x = 1; ' * 60}</script>"
    found = read_structure(f"<html><body><p>Eels.</p>{script}<p>Oak.</p></body></html>")
    assert kinds(found) == ["paragraph", "code", "paragraph"]


MAIL = """\
From: Maria <maria@brandt.example>
To: board@brandt.example
Subject: The harbour
 wall

Dear all, the estimate is here.

On Monday Jonas wrote:
> Two points matter.

From: Jonas <jonas@brandt.example>
Date: Tue, 3 Mar 2020
Subject: Re: The harbour wall

Thank you.

From: me. To: you. That is no head.
"""


def test_the_head_of_an_e_mail_is_a_heading() -> None:
    found = read_structure(MAIL)
    assert kinds(found) == [
        *("heading1", "paragraph", "paragraph", "quote"),
        *("heading1", "paragraph", "paragraph"),
    ]
    assert found.heading_path(MAIL.index("Dear")) == ("The harbour",)
    assert found.heading_path(MAIL.index("Thank")) == ("Re: The harbour wall",)


@pytest.mark.parametrize(
    "stamp",
    [
        *("09:12 ", "[09:12] ", "[2024-03-01 09:12:33] ", "2024-03-01T09:12:33.500 "),
        *("01/03/2024, 09:12 - ", "[01.03.24, 9:12:33 PM] ", "00:00:03 "),
    ],
)
def test_turns_of_a_chat_begin_with_a_time(stamp: str) -> None:
    lines = [f"{stamp}{name} eels: {i}\n" for i, name in enumerate(("anna:", "ben_2:") * 4)]
    assert kinds(read_structure("".join(lines))) == ["turn"] * 8
    lines = [f"{stamp}<{name}> eels: {i}\n" for i, name in enumerate(("anna", "ben_2") * 4)]
    assert kinds(read_structure("".join(lines))) == ["turn"] * 8
    assert "turn" not in kinds(read_structure("".join(line.removeprefix(stamp) for line in lines)))


def test_lines_with_wide_gaps_are_a_table() -> None:
    text = "Staff:\n\nDeck      120   126\nEngine     88    90\nOffice     90    96\n\nOne.  Two.\nThree.\n"
    assert kinds(read_structure(text)) == ["paragraph", "table", "paragraph"]


def test_double_backticks_are_restructured_text() -> None:
    assert read_structure("**Default** is ``3``, not ``4``.\n").format == "text"
    assert read_structure("**Default** is `3`, not `4`.\n").format == "markdown"


@pytest.mark.parametrize("label", ["**{}:**", "**{}**:", "<p>{}:", "<p><b>{}:</b>", "  <p>{}:"])
def test_turns_with_marks(label: str) -> None:
    names = ("Ilse", "Jonas B") * 4
    text = "\n\n".join(f"{label.format(name)} They come in May.</p>" for name in names)
    assert kinds(read_structure(text.replace("</p>", "") if "*" in label else text)) == ["turn"] * 8


def blocks_of(text: str) -> list[tuple[str, str]]:
    structure = read_structure(text, "text")
    return [(block.kind, text[block.start : block.end].strip("\n")) for block in structure.blocks]


def test_doctest_is_one_block_of_code() -> None:
    code = "   >>> try:\n   ...     open(path)\n   ... except OSError:\n   ...     pass\n   ...\n   None"
    assert blocks_of(f"It is reset:\n\n{code}\n\nThe end of it.") == [
        ("paragraph", "It is reset:"),
        ("code", code),
        ("paragraph", "The end of it."),
    ]


def test_indented_code_needs_no_colon_before_it() -> None:
    code = "   except E as N:\n       foo\n\nwas translated to\n\n   f(x)"
    text = f"This is as if\n\n{code}\n\nIt is.\n\n   He (the man) came."
    assert [kind for kind, _ in blocks_of(text)] == [
        "paragraph",
        "code",
        "paragraph",
        "code",
        "paragraph",
        "paragraph",
    ]


def test_terms_and_options_with_their_meaning_are_items() -> None:
    text = (
        "Fields:\n\n``a``\n  The first.\n``b``\n  The second.\n\n-q::\n--quiet::\n\tNo noise.\n-d::\n\tMore."
    )
    assert blocks_of(text)[1:] == [
        ("item", "``a``\n  The first."),
        ("item", "``b``\n  The second."),
        ("item", "-q::\n--quiet::\n\tNo noise."),
        ("item", "-d::\n\tMore."),
    ]


def test_parts_of_manual_pages_are_headings() -> None:
    options = "       Use them well.\n\n       -k, --keep\n              Keep it."
    text = f"NAME\n       xz - compress\n\nOPTIONS\n   Basic options\n{options}"
    structure = read_structure(text)
    assert structure.above(text.index("Keep it")) == ("OPTIONS", "Basic options")
    assert [kind for kind, _ in blocks_of(text)] == [
        "heading",
        "paragraph",
        "heading",
        "heading",
        "paragraph",
        "item",
    ]


def test_asciidoc_headings_listings_and_tables_are_read() -> None:
    listing = "[source,sh]\n----\nmake all\n\nmake install\n----"
    text = f"== Use\n\nRun it:\n\n{listing}\n\n|===\n|a |b\n\n|1 |2\n|===\n\nDone."
    assert [kind for kind, _ in blocks_of(text)] == [
        "heading",
        "paragraph",
        "paragraph",
        "code",
        "table",
        "paragraph",
    ]


def test_grid_tables_are_not_markdown() -> None:
    grid = "+---+---+\n| x | y |\n|===|===|\n| 1 | 2 |\n+---+---+\n| 3 | 4 |\n+---+---+\n"
    text = f"See **PEP 378** and [a](b).\n\n{grid}"
    assert read_structure(text).format == "text"


@pytest.mark.parametrize("text_format", ["markdown", "text"])
def test_a_formula_is_one_block(text_format) -> None:
    formula = "$$\na = b. C = d.\n$$"
    blocks = read_structure(f"The sum is\n\n{formula}\n\nwhere a is large.", text_format).blocks
    assert [block.kind for block in blocks] == ["paragraph", "code", "paragraph"]


ASCIIDOC_MANUAL = """\
lift(1)
=======

SYNOPSIS
--------
[verse]
'lift' [--trap] <place>

Traps
~~~~~

To see the traps, see linkgit:traps[1] or run

------------
$ lift --all
------------

--trap::
	Lifts a trap.
+
------------
$ lift --trap
$ count eels
------------
+
It is closed again.
"""


def test_manuals_in_asciidoc_are_no_markdown_and_their_listings_are_code() -> None:
    found = read_structure(ASCIIDOC_MANUAL)
    assert found.format == "text"
    assert kinds(found) == [
        *("heading1", "heading2", "paragraph", "heading3", "paragraph", "code"),
        *("item1", "code", "paragraph"),
    ]
    assert found.heading_path(starting(ASCIIDOC_MANUAL, "$ count")) == ("lift(1)", "SYNOPSIS", "Traps")


def test_titles_underlined_with_tildes_are_no_fences() -> None:
    text = "Traps\n~~~~~\n\nOf willow.\n\nEels\n~~~~\n\nOf the river.\n"
    assert read_structure(text).format == "text"
    assert read_structure("~~~\nlift\n~~~\n\nIt lifts.\n").format == "markdown"


@pytest.mark.parametrize("end", ["", "\n```js\ng(x)\n```\n\nAgain.\n"])
def test_a_chunk_may_begin_within_code(end: str) -> None:
    text = f"  return x\n}}\n```\n\n## Traps\n\nThey are of willow.\n{end}"
    assert kinds(read_structure(text, "markdown"))[:3] == ["code", "heading2", "paragraph"]


def test_a_fence_without_a_language_begins_code() -> None:
    for text in ("Run:\n\n```\nlift\n```\n\nIt lifts.\n", "```\nlift\n"):
        assert kinds(read_structure(text, "markdown"))[-2:] != ["code", "code"]
        assert "code" in kinds(read_structure(text, "markdown"))
    assert kinds(read_structure("Run:\n\n```\nlift\n```\n\nIt lifts.\n", "markdown")) == [
        *("paragraph", "code", "paragraph")
    ]


def test_a_command_between_two_lines_is_code() -> None:
    text = "Lift them so:\n\n------------\n$ lift --all\n------------\n\nThey are closed again.\n"
    assert kinds(read_structure(text)) == ["paragraph", "code", "paragraph"]
    title = "------------\n lift --all \n------------\n\nThey are closed again.\n"
    assert kinds(read_structure(title)) == ["heading1", "paragraph"]
