import pickle
import random
import textwrap
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from unicodedata import east_asian_width

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from precise_rag import Span, prune, split_sentences
from precise_rag.sentences import load_sentence_splitter, splitters
from precise_rag.sentences.splitters import MAX_CHARACTERS
from precise_rag.sentences.trimming import has_words, trim_spans, without_markup, without_rules
from support.documents import read_cases


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in load_sentence_splitter().split(text)]


def test_abbreviations_ordinals_and_blank_lines_are_known() -> None:
    first = "Dr. Smith met Mr. Jones at 5 p.m. in Washington, D.C. on Jan. 5.  "
    parts = [first, "He left.\n\n", "No end mark\n\n", "Yes?"]
    assert pieces("".join(parts)) == parts
    parts = ["Am 6. Oktober kam die Fähre. ", "Im 20.  Jahrhundert waren es 5. ", "Danach kam keine."]
    assert pieces("".join(parts)) == parts
    short = "Dr. Smith met Mr. Jones at 5 p.m. in Washington, D.C. He left (at 6.30). Why? Ask J. R. Doe! "
    assert pieces(short * 100) == pieces(short) * 100, "also if it is read in parts"
    splitter = load_sentence_splitter()
    assert splitter.name.startswith("auto")
    assert any(map(str.isdigit, splitter.name))
    assert pickle.loads(pickle.dumps(splitter)).split("One. Two.") == [Span(0, 5), Span(5, 9)]


@pytest.mark.parametrize("expected", read_cases("sentences.json", "sentences"))
def test_expected_sentences(expected: list[str]) -> None:
    assert pieces("".join(expected)) == expected
    assert [span.end - span.start for span in split_sentences("".join(expected))] == list(map(len, expected))


_DRAW = random.Random(5)
_WORDS = ("harbour", "bridge", "suite", "opens", "water", "seven", "wooden", "over", "north", "wind", "river")


def _words(least: int, most: int) -> str:
    return " ".join(_DRAW.choices(_WORDS, k=_DRAW.randint(least, most)))


_LINES: dict[str, Callable[[int], str]] = {
    "access log": lambda i: (
        f'10.0.{i % 7}.{i} - - [12/Mar:10:{i}] "GET /{_words(1, 1)}/{i} HTTP/1.1" 200 {i * 37}'
    ),
    "system log": lambda i: f"Mar  3 10:{i % 60:02}:01 host{i % 3} {_words(1, 1)}[{i}]: {_words(4, 12)}",
    "log in ISO times": lambda i: f"2024-03-12T10:{i % 60:02}:01Z INFO {_words(3, 12)}",
    "prices": lambda i: f"{_words(1, 4).capitalize()}: {i * 7} euros a night",
    "settings": lambda i: f"{_words(2, 2).replace(' ', '_')} = {i}",
    "environment": lambda i: f"{_words(1, 2).replace(' ', '_').upper()}={_words(1, 1) if i % 3 else i}",
    "paths": lambda _: f"/srv/{_words(1, 4).replace(' ', '/')}",
    "telephones": lambda i: f"{_words(2, 2).title()} +47 20{i:03} depot",
    "in Arabic": lambda i: f"برتقال أحمر {i} ريال للكيلو",
    "properties": lambda i: f"{_words(2, 2).replace(' ', '.')}={i}",
    "to do": lambda _: _words(2, 8).capitalize(),
    "to do in small letters": lambda _: _words(2, 8),
    "terms in small letters": lambda i: f"{_words(1, 1)} – the {_words(3, 3)}{' or two' * (i % 9 == 4)}",
    "to do in Korean": lambda i: ["문서를 정리하기", "고객에게 전화하기", "재고 확인"][i % 3],
    "chat of one": lambda i: f"[10:{i % 60:02}] Bob: {_words(2, 12)}",
    "chat of one without times": lambda _: f"Bob: {_words(2, 12)}",
    "payments": lambda i: f"1{i // 10}.02. {_words(6, 9)} {i},20",
    "records": lambda i: f'{{"id": {i}, "text": "{_words(2, 9)}"}}',
}


def test_sentences_of_comments_are_whole_and_an_empty_line_of_one_ends_a_paragraph() -> None:
    lines = (
        "By default the pump listens\non all addresses. An address that\ndoes not exist\n"
        "fails, and what is\nin use fails as well\nand stops it.\n"
    ).splitlines()
    text = "".join(f"# {line}\n" for line in [*lines, "", *lines]).replace("# \n", "#\n")
    found = [text[start:end].replace("\n# ", " ").strip("# \n") for start, end in split_sentences(text)]
    assert found == [" ".join(lines[:2])[:45], " ".join(lines)[46:]] * 2


@pytest.mark.parametrize("text", read_cases("sentences.json", "ragged lines"))
def test_wrapped_sentences_are_no_list_however_ragged(text: str) -> None:
    assert all(piece.rstrip().endswith((".", "less")) for piece in pieces(text))


@pytest.mark.parametrize("sentence", read_cases("sentences.json", "full width"))
def test_lines_of_full_width_are_measured_in_columns(sentence: str) -> None:
    text, width, lines = sentence * 12, 0, [""]
    for sign in text:
        width += 1 + (east_asian_width(sign) in "WF")
        if width > 70:
            width, lines = 0, [*lines, ""]
        lines[-1] += sign
    found = ["".join(piece.split()) for piece in pieces("\n".join(lines))]
    assert found == ["".join(sentence.split())] * 12


@pytest.mark.parametrize("kind", _LINES)
def test_each_line_of_a_log_or_a_list_is_a_unit(kind: str) -> None:
    lines = [_LINES[kind](i) + "\n" for i in range(1, 41)]
    assert pieces("".join(lines)) == lines
    assert pieces("Before.\n\n" + "".join(lines) + "\nAfter it.") == [
        "Before.\n\n", *lines[:-1], lines[-1] + "\n", "After it.",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [30, 50, 72, 100])
def test_wrapped_sentences_stay_whole(width: int) -> None:
    prose = " ".join(f"{_words(5, 20).capitalize()}." for _ in range(40))
    address = "https://example.org/" + "x" * 150
    wrapped = textwrap.wrap(f"{prose} {address} {prose}", width, break_long_words=False)
    whole = [" ".join(piece.split()) for piece in pieces(" ".join(wrapped))]
    assert [" ".join(piece.split()) for piece in pieces("\n".join(wrapped))] == whole
    clauses = "".join(f"When {_words(3, 5)},\n{_words(6, 9)}\nunless {_words(3, 6)}.\n" for _ in range(9))
    assert [piece.count("\n") for piece in pieces(clauses)] == [3] * 9
    assert len(pieces("Maria Keller\nHafenstraße 3\n20457 Hamburg")) == 1


@pytest.mark.parametrize("clause", ["ร้านเปิดทุกวันตั้งแต่แปดโมงเช้าถึงเย็น", "ຮ້ານເປີດທຸກມື້ແຕ່ແປດໂມງເຊົ້າຫາແລງ"])
@pytest.mark.parametrize(("gap", "clauses"), [(" ", 2), ("\n", 1), (" 7 ", 6)])
def test_spaces_of_thai_and_lao_end_units_of_some_length(clause: str, gap: str, clauses: int) -> None:
    units = pieces((clause + gap) * 60)
    assert len(units) >= 60 // clauses
    assert all(clause in unit and len(unit) <= 300 for unit in units)
    quoted = f"The words {clause} {clause} {clause} are on a sign. " + "It is old and hangs there. " * 9
    assert len(pieces(quoted)) == 10


def test_long_sentences_are_cut_between_words() -> None:
    lines = pieces("a, " + "word,\nword word word word " * 80)
    assert all(piece.endswith(",\n") for piece in lines[:-1])
    assert [len(piece) for piece in pieces("a" * 2500)] == [1000, 1000, 500]
    words = pieces("word " * 700)
    assert "".join(words) == "word " * 700
    assert all(piece.strip().count("word") * 5 - 1 == len(piece.strip()) <= MAX_CHARACTERS for piece in words)


text_like = st.text(
    st.one_of(st.sampled_from(" \n\r\t.!?\"'-#|•。？।؟АБвaB1\ud800\u2029\u200b👍"), st.characters()),
    max_size=300,
)


_BASE64 = b64encode(random.Random(0).randbytes(3000)).decode()
_WRAPPED = "\n".join(textwrap.wrap(_BASE64, 64))


@pytest.mark.parametrize(
    "data",
    [
        f"![A lift](data:image/png;base64,{_BASE64})",
        f"[image1]: <data:image/png;base64,{_BASE64}>",
        f'<img src="data:image/png;base64,{_BASE64}">',
        f"-----BEGIN CERTIFICATE-----\n{_WRAPPED}\n-----END CERTIFICATE-----",
    ],
)
def test_base64_is_apart_and_not_read(data: str) -> None:
    text = f"The pump is blue.\n\n{data}\n\nThe motor is red."
    read = "".join(map(without_markup, units := pieces(text)))
    assert read.startswith("The pump is blue.\n\n")
    assert read.endswith("The motor is red.")
    assert len(read) < 120
    assert pieces(f"{_BASE64[:400]}\n\nThe motor is red.")[-1].strip() == "The motor is red."
    assert _BASE64[:700] in without_markup(f"ssh-rsa {_BASE64[:700]} ada@example.org")
    assert max(map(len, units)) <= MAX_CHARACTERS
    assert prune(text, "Which colour has the motor?", 32, reranker="packaged").text.endswith("is red.")


@given(text=text_like)
@example(text="Z\u2028.\ud83d?!?! 天地玄黃天地玄黃。 One. Two.")  # sentencex panics
@example(text="a" + " " * 3000)
@example(text=" " * 3000 + "b" * 1500)
@example(text="a" + " " * 3000 + "b. \x00\x1c")
def test_spans_cover_any_text(text: str) -> None:
    spans = load_sentence_splitter().split(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(start < end for start, end in spans)
    assert all(len(text[start:end].strip()) <= MAX_CHARACTERS for start, end in spans)
    if text.strip():
        assert all(text[start:end].strip() for start, end in spans)


@pytest.mark.parametrize(
    "unit", ["?!", "x", " ", "Yes. ", "\n", "\n\n", "a\u0301", "天地玄黃。", "“.” ", "\n- a", "\ud800"]
)
def test_libraries_read_long_blocks_in_parts(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = unit * (50_000 // len(unit))
    read: list[int] = []

    def ends(part: str, first: int | None) -> list[int]:
        read.append(len(part))
        return [place + 1 for place, mark in enumerate(part) if mark in ".。\n "][:first]

    for first in (None, 1, 0):
        read.clear()
        monkeypatch.setattr(splitters, "_ends", partial(ends, first=first))
        spans = split_sentences(text)
        assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])]
        assert spans[-1].end == len(text)
        assert max(read, default=0) <= 2048
        assert sum(read) <= 3 * len(text)


@pytest.mark.parametrize("sentence", read_cases("sentences.json", "abbreviations"))
def test_abbreviations_end_no_sentence(sentence: str) -> None:
    assert pieces(sentence + sentence) == [sentence, sentence]
    assert len(pieces("Netze, Fässer usw. Danach kam keine.")) == 2
    assert len(pieces("we met at the bar. it was fun. then we ate.")) == 3
    for sentences in ("Длина лодки 90 см. Потом стало тихо.", "Нашли ген. Это соль и пр. Вот.", "ఇది ఉంది. నా."):
        assert len(pieces(sentences)) == sentences.count(".")


@pytest.mark.parametrize("sentence", read_cases("sentences.json", "marks of code"))
def test_marks_of_code_end_no_sentence(sentence: str) -> None:
    parts = ["All is well here. ", f"{sentence} ", "The end."]
    assert pieces("".join(parts)) == parts


def kept(text: str) -> str:
    ((start, end),) = trim_spans(text, np.array([[0, len(text)]])).tolist()
    return text[start:end]


@pytest.mark.parametrize(("text", "expected"), read_cases("sentences.json", "what is kept"))
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
    assert not any(map(has_words, (*lines, "Hull tools 9.1\t\t  May 2023\t\t ROPE(1)\n")))
    lines = ("<li>It turns.</li>", "3 < 4 and x>", ".. _Ferry: https://ferry.example/\n")
    assert all(map(has_words, (*lines, "<!-- YAML\nadded: v1.0\n-->")))
    staff = "".join(f'<employee name="{name}"\n  room="B1"/>\n' for name in ("Ada", "Bo", "Cy", "Di"))
    assert len(split_sentences(f"<staff>\n{staff}")) == 4
    badges = ("|Build| |Docs-Status| |Versions|", "[Oil](#oil) • [Belt](#belt) | ![](a.svg) [Rope](#rope)")
    assert not any(
        map(has_words, ('<a name="oil"/>', '<img alt="Oil" src="oil"/>', '<div class="oil">', *badges))
    )
    assert all(
        map(has_words, ("|Anna| |Bo|", "|Anna|Bo|Cy|", "[Oil](#oil)", "[Oil](#oil) • [Belt](belt.md)"))
    )
    images = '<p>\n  <a href="x"><img alt="build" src="' + 300 * "x" + '"></a>\n</p>\n\n'
    assert kept(f"{images}# Pump") == "# Pump"
    text = "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+\n"
    assert without_rules(text) == "| a | b |\n| 1 | 2 |"
    assert without_markup("<p>Use <code class='x'>-9</code>.") == "Use -9 ."
    for code in ("List<String> a;", "`<b>x</b>`", "The <table> tag.", "</b>"):
        assert without_markup(code) == code
    assert without_rules("One - two\n-- three\n- four") == "One - two\n-- three\n- four"


@pytest.mark.parametrize(
    "unit", ["</p>", "<p>", "<!-- ", "<!---->", ".. _a:\n", "-\n", "- ", "\n", " ", "a\n", "|", "x-\n"]
)
def test_long_texts_are_read_in_linear_time(unit: str) -> None:
    text = "a" + unit * 200_000 + "b"
    assert kept(text)[0] == without_rules(text)[0] == "a"
