from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from precise_rag.sentences import paragraph_ids, split_sentences
from precise_rag.sentences.blocks import block_spans
from precise_rag.structure import read_structure
from precise_rag.types import Span


def blocks(text: str) -> list[str]:
    return [text[start:end] for (start, end), _ in block_spans(text, read_structure(text))]


def test_blocks_end_at_blank_lines_headings_list_items_and_rows_with_their_wrapped_cells() -> None:
    assert blocks("# Title\nOne.\n\nTwo:\n- a\n- b\n\n| x | y |\n|---|---|\n| 1 | 2 |") == [
        "# Title\n",
        "One.\n\n",
        "Two:\n",
        "- a\n",
        "- b\n\n",
        "| x | y |\n|---|---|\n| 1 | 2 |",
    ]
    rule = "+--------+----------+\n"
    rows = [f"| part {number:2}| turns    |\n|        | slowly   |\n{rule}" for number in range(20)]
    assert blocks(rule + "| Name   | Meaning  |\n+========+==========+\n" + "".join(rows))[1:] == rows


def test_long_code_is_split_between_stanzas_and_a_long_stanza_between_lines() -> None:
    stanza = "def f():\n" + "    call(argument)\n" * 15 + "\n"
    code = "```\n" + stanza * 4 + "```\n"
    assert blocks(code) == ["```\n" + stanza, stanza, stanza, stanza + "```\n"]
    for unit, most in (("x = 1\n\n", 400), ("    argument=1,\n", 500)):
        long = "```\n" + unit * 100 + "```\n"
        found = blocks(long)
        assert "".join(found) == long
        assert 1 < len(found) < 10
        assert all(part.endswith(unit) and len(part) <= most for part in found[:-1])


def test_a_blank_line_begins_a_paragraph() -> None:
    text = "\n\nOne. Two.\n\nThree.\n \t\nFour.\nFive.\r\n\r\nSix."
    spans = split_sentences(text)
    assert paragraph_ids(text, spans).tolist() == [0, 0, 1, 2, 2, 3]
    assert paragraph_ids(text, [Span(0, 6), Span(16, 20)]).tolist() == [0, 1]
    assert paragraph_ids("", []).tolist() == []


@given(st.text(st.sampled_from(" \n\r\t.#-|1aB\u2029") | st.characters(), max_size=200))
def test_paragraph_numbers_ascend_from_0(text: str) -> None:
    ids = paragraph_ids(text, split_sentences(text)).tolist()
    assert ids[:1] in ([], [0])
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(ids))
