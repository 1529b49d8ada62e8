"""Texts of any format become blocks."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precise_rag.errors import InputError
from precise_rag.sentences import split_sentences
from precise_rag.structure import read_structure
from precise_rag.structure.marks import ends_in_colon, without_marks
from support.documents import read_cases, read_document
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


@pytest.mark.parametrize(("heading", "title"), read_cases("structure.json", "titles with marks"))
def test_titles_have_no_marks(heading: str, title: str) -> None:
    assert without_marks(heading) == title


def test_colons_at_the_end_are_known_and_carriage_returns_change_nothing() -> None:
    assert all(map(ends_in_colon, ("Bring:", "**Bring:**\n\n", "<p>Bring:</p>\n", "带来：", "as follows::")))
    assert not any(map(ends_in_colon, ("Bring: oil", "12:30", "Bring.", "")))
    text = "# Eels\n\nThey come.\n\n- oak\n\n| a |\n|---|\n| 1 |\n\nFares::\n\n    3\n"
    for text_format, end in (("markdown", "\r\n"), ("text", "\r")):
        expected = kinds(read_structure(text, text_format))  # type: ignore[arg-type]
        assert kinds(read_structure(text.replace("\n", end), text_format)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "text_format"),
    [
        *read_cases("structure.json", "formats"),
        ("It has oil.\n" * 200 + "\n# pumpd -q\n\nIt stops.\n", "text"),
        ("# Pumps\n\n" + "It has oil.\n" * 200, "markdown"),
    ],
)
def test_the_format_is_told_by_the_marks(text: str, text_format: str) -> None:
    assert read_structure(text).format == text_format


CASES: dict[str, tuple[str | None, str, str]] = read_cases("structure.json", "kinds") | {
    "markdown with tables of tags is markdown": (
        None,
        f"## Fish\n\n<table>{'<tr><td>Eel</td><td>May</td></tr>' * 20}</table>\n\n## Birds\n\nTerns nest.\n",
        "heading2 table heading2 paragraph",
    ),
    "html has long paragraphs": (
        None,
        f"<h2>Eels</h2>\n\n<p>{'They come in May. ' * 90}</p>\n\n" * 3,
        " ".join(["heading2 paragraph"] * 3),
    ),
    "long scripts are code": (
        None,
        f"<html><body><p>Eels.</p><script>{'x = 1; ' * 60}</script><p>Oak.</p></body></html>",
        "paragraph code paragraph",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_blocks_have_their_kinds(case: str) -> None:
    text_format, text, expected = CASES[case]
    assert " ".join(kinds(read_structure(text, text_format))) == expected


ABOVE: dict[str, tuple[str | None, str, dict[str, list[str]]]] = read_cases("structure.json", "above") | {
    case: (None, read_document(name), above)
    for case, (name, above) in read_cases("structure.json", "above in files").items()
}


@pytest.mark.parametrize("case", ABOVE)
def test_what_stands_above_words_of_a_text(case: str) -> None:
    text_format, text, expected = ABOVE[case]
    found = read_structure(text, text_format)
    assert {words: list(found.above(text.index(words))) for words in expected} == expected


def test_markdown_also_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    document = read_document("estuary.md")
    found = read_structure(document)
    assert found.format == "markdown"
    assert kinds(found) == [
        *("heading1", "paragraph", "item1", "item1", "item2", "item1", "code", "quote", "table"),
        *("heading6", "paragraph", "heading2", "heading3"),
    ]
    text = f"{document}\n" * 9
    whole = read_structure(text).blocks
    monkeypatch.setattr("precise_rag.structure.markdown._PART", 700)
    assert read_structure(text).blocks == whole
