"""Texts of any splitter located in their document, and plain search over units."""

import pytest

from precise_rag.errors import EmptyIndexError, InputError
from precise_rag.evaluation.units import Unit, UnitIndex, locate_texts
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

TEXT = (
    "The mill stands by the river. Its wheel turns slowly.\n\n"
    "Bread is baked on Fridays. The oven is old. Rye keeps longest.\n\n"
    "The inn closed in March. Nobody minds."
)
DOCUMENT = Document("d", TEXT)


def test_texts_are_found_with_overlap_and_changed_white_space() -> None:
    document = Document("d", "one two\n\ntwo three  four two")
    spans = locate_texts(document, ["one two", "two two three", " ", "three four two", "two"])
    assert [document.text[slice(*span)] for span in spans] == [
        "one two",
        "two\n\ntwo three",
        "three  four two",
        "two",
    ]
    assert spans[-1] == (25, 28)


def test_text_that_is_not_in_the_document_is_refused() -> None:
    with pytest.raises(InputError, match="'mill wheel'"):
        locate_texts(DOCUMENT, ["The mill", "mill wheel"])


UNITS = [
    Unit("d", start, start + 3, text) for start, text in ((0, "red cat"), (4, "blue cat"), (8, "green dog"))
]


@pytest.mark.parametrize("kind", ["dense", "bm25", "hybrid"])
def test_plain_search_finds_the_shared_words(kind: str) -> None:
    index = UnitIndex([DOCUMENT], UNITS, HashEncoder(), kind)
    found = index.search("green dog", 2)
    assert (len(index), len(found)) == (3, 2)
    assert (found[0].start, found[0].text) == (8, TEXT[8:11])
    assert found[0].score >= found[1].score


def test_hybrid_is_the_mean_of_both_normalised() -> None:
    index = UnitIndex([DOCUMENT], UNITS, HashEncoder(), "hybrid")
    best, *_, worst = index.search("green dog", 3)
    assert best.score == pytest.approx(1.0)
    assert worst.score == pytest.approx(0.0)
    assert set(best.scores) == {"dense", "bm25", "hybrid"}


def test_two_units_of_one_span_are_returned_once() -> None:
    twice = [Unit("d", 0, 9, "red cat"), Unit("d", 0, 9, "red dog")]
    assert len(UnitIndex([DOCUMENT], twice, HashEncoder(), "dense").search("red", 5)) == 1


def test_query_without_words_and_no_units() -> None:
    assert UnitIndex([DOCUMENT], UNITS, HashEncoder(), "bm25").search("?", 3)[0].score == pytest.approx(0)
    with pytest.raises(EmptyIndexError):
        UnitIndex([DOCUMENT], [], HashEncoder(), "dense")
