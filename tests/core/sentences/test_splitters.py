import pickle
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precise_rag import Span, split_sentences
from precise_rag.errors import InputError, ModelError
from precise_rag.sentences import load_sentence_splitter, paragraph_ids
from precise_rag.sentences.splitters import MAX_CHARACTERS

NAMES = ("auto", "nupunkt", "sentencex", "punkt")


def pieces(text: str, name: str = "auto") -> list[str]:
    return [text[start:end] for start, end in load_sentence_splitter(name).split(text)]


@pytest.mark.parametrize("name", NAMES)
def test_abbreviations_and_blank_lines(name: str) -> None:
    text = "Dr. Smith met Mr. Jones at 5 p.m. in Washington, D.C. on Jan. 5.  He left.\n\nNo end mark\n\nYes?"
    assert pieces(text, name) == [
        "Dr. Smith met Mr. Jones at 5 p.m. in Washington, D.C. on Jan. 5.  ",
        "He left.\n\n",
        "No end mark\n\n",
        "Yes?",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\n ", [" \n\n "]),
        ("\n\n Hi. \n\n", ["\n\n Hi. \n\n"]),
        ("One.\r\nTwo.\r\n\r\nThree.", ["One.\r\n", "Two.\r\n\r\n", "Three."]),
        (
            "We need:\n- eggs\n- milk\n\nThat is all.",
            ["We need:\n", "- eggs\n", "- milk\n\n", "That is all."],
        ),
        ("# Title\nText. More text.", ["# Title\n", "Text. ", "More text."]),
        ("A line\nwrapped hard. Next.", ["A line\nwrapped hard. ", "Next."]),
        ("你好。再见！好吗？", ["你好。", "再见！", "好吗？"]),
        ("今日は晴れです。明日は雨でしょう。", ["今日は晴れです。", "明日は雨でしょう。"]),
        ("यह पहला है। यह दूसरा है।", ["यह पहला है। ", "यह दूसरा है।"]),
        ("هل هذا سؤال؟ نعم.", ["هل هذا سؤال؟ ", "نعم."]),
        ("He wrote 你好 on it. Then he left.", ["He wrote 你好 on it. ", "Then he left."]),
        ("English first. Yes.\n\n中文在后。好的。", ["English first. ", "Yes.\n\n", "中文在后。", "好的。"]),
        ("Good 👍🏽. Fine \ud800 too.", ["Good 👍🏽. ", "Fine \ud800 too."]),
    ],
)
def test_expected_sentences(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_long_sentences_are_cut_between_words() -> None:
    assert [len(piece) for piece in pieces("a" * 2500)] == [1000, 1000, 500]
    words = pieces("word " * 700)
    assert "".join(words) == "word " * 700
    assert all(piece.strip().count("word") * 5 - 1 == len(piece.strip()) <= MAX_CHARACTERS for piece in words)


text_like = st.text(
    st.one_of(
        st.sampled_from(" \n\r\t.!?\"'-#|•。？।؟АБвaB1\ud800\u2029\u200b👍"),
        st.characters(),
    ),
    max_size=300,
)


@pytest.mark.parametrize("name", NAMES)
@given(text=text_like)
@example(text="a" + " " * 3000)
@example(text=" " * 3000 + "b" * 1500)
@example(text="a" + " " * 3000 + "b. \x00\x1c")
def test_spans_tile_any_text(name: str, text: str) -> None:
    spans = load_sentence_splitter(name).split(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(start < end for start, end in spans)
    assert all(len(text[start:end].strip()) <= MAX_CHARACTERS for start, end in spans)
    if text.strip():
        assert all(text[start:end].strip() for start, end in spans)


@given(text=text_like)
def test_paragraphs_ascend_from_zero(text: str) -> None:
    ids = paragraph_ids(text, split_sentences(text)).tolist()
    assert ids[:1] in ([], [0])
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(ids))


def test_paragraphs_begin_after_blank_lines() -> None:
    text = "\n\nOne. Two.\n\nThree.\n \t\nFour.\nFive.\r\n\r\nSix."
    spans = split_sentences(text)
    assert paragraph_ids(text, spans).tolist() == [0, 0, 1, 2, 2, 3]
    assert paragraph_ids(text, [Span(0, 6), Span(16, 20)]).tolist() == [0, 1]
    assert paragraph_ids("", []).tolist() == []


def test_names_carry_versions_and_splitters_pickle() -> None:
    for name in NAMES:
        splitter = load_sentence_splitter(name)
        assert splitter.name.startswith(name)
        assert any(c.isdigit() for c in splitter.name)
        assert pickle.loads(pickle.dumps(splitter)).split("One. Two.") == [Span(0, 5), Span(5, 9)]


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be auto, nupunkt, sentencex or punkt, got 'spacy'"):
        load_sentence_splitter("spacy")
    with pytest.raises(InputError, match="only for the splitter 'punkt'"):
        load_sentence_splitter("auto", path=tmp_path)
    with pytest.raises(ModelError, match=r"nltk\.downloader punkt_tab"):
        load_sentence_splitter("punkt", path=tmp_path)
