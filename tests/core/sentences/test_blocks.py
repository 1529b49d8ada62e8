from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from precise_rag.sentences import paragraph_ids, split_sentences
from precise_rag.sentences.blocks import block_spans
from precise_rag.structure import read_structure
from precise_rag.types import Span

TEXTS = st.text(st.sampled_from(" \n\r\t.#-|1aB\u2029") | st.characters(), max_size=200)


def blocks(text: str) -> list[str]:
    return [text[start:end] for (start, end), _ in block_spans(text, read_structure(text))]


def test_blocks_end_at_blank_lines_headings_list_items_and_table_rows() -> None:
    assert blocks("# Title\nOne.\n\nTwo:\n- a\n- b\n\n| x | y |\n|---|---|\n| 1 | 2 |") == [
        "# Title\n",
        "One.\n\n",
        "Two:\n",
        "- a\n",
        "- b\n\n",
        "| x | y |\n",
        "|---|---|\n",
        "| 1 | 2 |",
    ]


def test_lines_of_code_stay_together_up_to_a_length() -> None:
    code = "```\n" + "x = 1\n\n" * 100 + "```\n"
    found = blocks(code)
    assert "".join(found) == code
    assert 1 < len(found) < 10
    assert all(part.endswith("\n") and len(part) <= 400 for part in found)


def test_the_end_of_code_is_not_parted_from_the_lines_before() -> None:
    code = "```\ncall(\n" + "    argument=1,\n" * 26 + ")\n```\n"
    assert len(code) > 400
    assert blocks(code) == [code]


@given(TEXTS)
def test_blocks_cover_any_text(text: str) -> None:
    assert "".join(blocks(text)) == text
    assert all(blocks(text))


@given(TEXTS)
def test_paragraph_numbers_ascend_from_0(text: str) -> None:
    ids = paragraph_ids(text, split_sentences(text)).tolist()
    assert ids[:1] in ([], [0])
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(ids))


def test_a_blank_line_begins_a_paragraph() -> None:
    text = "\n\nOne. Two.\n\nThree.\n \t\nFour.\nFive.\r\n\r\nSix."
    spans = split_sentences(text)
    assert paragraph_ids(text, spans).tolist() == [0, 0, 1, 2, 2, 3]
    assert paragraph_ids(text, [Span(0, 6), Span(16, 20)]).tolist() == [0, 1]
    assert paragraph_ids("", []).tolist() == []
