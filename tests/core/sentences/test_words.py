import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.sentences.words import has_words, trim_spans, without_rules


def kept(text: str) -> str:
    ((start, end),) = trim_spans(text, np.array([[0, len(text)]])).tolist()
    return text[start:end]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left.\n\n* * *\n", "He left."),
        ("+---+---+\n| a | b |\n+===+===+\n", "| a | b |"),
        ("Title\n=====\n", "Title"),
        ("| a | b |\n|---|---|\n", "| a | b |\n|---|---|"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("```\nx = 1\n```\n", "```\nx = 1\n```"),
        ("f(\n  x\n)\n", "f(\n  x\n)"),
        ("\n    if x:\n        y\n    z\n", "    if x:\n        y\n    z"),
        ("    A first line\nis indented.", "A first line\nis indented."),
        ("\n  One line.\n", "One line."),
        ("", ""),
        ("The sizes are:\n\n<!-- lint disable -->\n", "The sizes are:"),
        ("<!-- a -->\n<!-- b -->Words.", "Words."),
        ("Text.\n\n.. index:: pair: a; b\n\n.. _wide columns:\n", "Text."),
        ("</li>\n<li>One.</li>\n<li>", "<li>One.</li>"),
        ("<p>A half of it.", "A half of it."),
        ("the rest.</p></td></tr>\n<tr><td> </td></tr>", "the rest."),
        ("<pre>x = 1\ny = 2", "<pre>x = 1\ny = 2"),
        ("<b>Note</b> the <code>x</code>", "<b>Note</b> the <code>x</code>"),
        ("a < b and c > d", "a < b and c > d"),
    ],
)
def test_rules_and_space_around_words_go_and_common_indents_stay(text: str, expected: str) -> None:
    assert kept(text) == expected


@given(st.text(st.sampled_from(" \n\r\t.#-|+=*_1aB─\u2029") | st.characters(), max_size=80))
def test_no_word_is_lost(text: str) -> None:
    words = [mark for mark in text if mark.isalnum()]
    if not any(mark in text for mark in ("<", "..")):
        assert [mark for mark in kept(text) if mark.isalnum()] == words
    assert [mark for mark in without_rules(text) if mark.isalnum()] == words
    if words:
        assert kept(text).strip()
        assert not kept(text)[-1].isspace()


def test_tags_comments_names_of_places_and_rules_between_rows_are_no_words() -> None:
    lines = ("</li>\n</ul>", "<!-- eslint-disable semi -->\n", ".. _wide columns:\n\n.. index:: columns\n")
    assert not any(map(has_words, lines))
    lines = ("<li>It turns.</li>", "3 < 4 and x>", ".. _Ferry: https://ferry.example/\n")
    assert all(map(has_words, (*lines, "<!-- YAML\nadded: v1.0\n-->")))
    text = "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+\n"
    assert without_rules(text) == "| a | b |\n| 1 | 2 |"
    assert without_rules("One - two\n-- three\n- four") == "One - two\n-- three\n- four"


@pytest.mark.parametrize(
    "unit",
    ["</p>", "<p>", "<!-- ", "<!---->", ".. _a:\n", "-\n", "- ", "\n", " ", "a\n", "|", "x-\n"],
)
def test_long_texts_are_read_in_linear_time(unit: str) -> None:
    text = "a" + unit * 200_000 + "b"
    assert kept(text)[0] == without_rules(text)[0] == "a"
