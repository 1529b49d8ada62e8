"""Pieces of any splitter, put back in their place, and plain search over them."""

import pytest

from precise_rag.errors import EmptyIndexError, InputError
from precise_rag.evaluation.peers.splitters import load_peer_splitter
from precise_rag.evaluation.peers.units import Unit, UnitIndex, locate_pieces
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

TEXT = (
    "The mill stands by the river. Its wheel turns slowly.\n\n"
    "Bread is baked on Fridays. The oven is old. Rye keeps longest.\n\n"
    "The inn closed in March. Nobody minds."
)
DOCUMENT = Document("d", TEXT)


def test_pieces_are_found_with_overlap_and_changed_white_space() -> None:
    document = Document("d", "one two\n\ntwo three  four two")
    spans = locate_pieces(document, ["one two", "two two three", " ", "three four two", "two"])
    assert [document.text[slice(*span)] for span in spans] == [
        "one two",
        "two\n\ntwo three",
        "three  four two",
        "two",
    ]
    assert spans[-1] == (25, 28)


def test_text_that_is_not_in_the_document_is_refused() -> None:
    with pytest.raises(InputError, match="'mill wheel'"):
        locate_pieces(DOCUMENT, ["The mill", "mill wheel"])


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


def test_hybrid_is_the_mean_of_both_stretched() -> None:
    index = UnitIndex([DOCUMENT], UNITS, HashEncoder(), "hybrid")
    best, *_, worst = index.search("green dog", 3)
    assert best.score == pytest.approx(1.0)
    assert worst.score == pytest.approx(0.0)
    assert set(best.scores) == {"dense", "bm25", "hybrid"}


def test_one_place_comes_back_once() -> None:
    twice = [Unit("d", 0, 9, "red cat"), Unit("d", 0, 9, "red dog")]
    assert len(UnitIndex([DOCUMENT], twice, HashEncoder(), "dense").search("red", 5)) == 1


def test_query_without_words_and_no_units() -> None:
    assert UnitIndex([DOCUMENT], UNITS, HashEncoder(), "bm25").search("?", 3)[0].score == 0
    with pytest.raises(EmptyIndexError):
        UnitIndex([DOCUMENT], [], HashEncoder(), "dense")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("langchain-recursive", {"chunk_size": 12}),
        ("llamaindex-sentence", {"chunk_size": 30}),
        ("llamaindex-semantic", {}),
        ("sentences", {}),
        ("precise", {}),
        ("precise-greedy", {}),
    ],
)
def test_splitters_cover_the_text_and_know_where(name: str, options: dict[str, int]) -> None:
    units = load_peer_splitter(name, HashEncoder(), **options)(DOCUMENT)
    assert all("".join(TEXT[u.start : u.end].split()) == "".join(u.text.split()) for u in units)
    assert "".join("".join(u.text for u in units).split()) == "".join(TEXT.split())


def test_the_sentence_window_scores_one_sentence_and_returns_its_neighbours() -> None:
    units = load_peer_splitter("llamaindex-window", HashEncoder(), window_size=1)(DOCUMENT)
    wheel = next(u for u in units if "wheel" in u.text)
    assert wheel.text.strip() == "Its wheel turns slowly."
    assert TEXT[wheel.start : wheel.end].split()[0] == "The"
    assert TEXT[wheel.start : wheel.end].endswith("Fridays.")


def test_unknown_splitters_and_options() -> None:
    with pytest.raises(InputError, match="langchain-recursive"):
        load_peer_splitter("nltk", HashEncoder())
    with pytest.raises(InputError, match="colour"):
        load_peer_splitter("langchain-recursive", HashEncoder(), colour=3)
