"""Words and stop words, and BM25 over them."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from precise_rag.index import HybridIndex, table
from precise_rag.index.bm25 import BM25Matrix, BM25Settings, Postings, bm25_scores, counted_words
from precise_rag.index.words import load_stop_words, split_words, word_columns, word_numbers
from precise_rag.testing import HashEncoder
from precise_rag.types import Document


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S. uses C++, C# and Café's R.", "the u s uses c++ c# and cafe s r"),
        ("北京大学在北京", "北京 京大 大学 学在 在北 北京"),
        ("Straße ＡＢＣ １２", "strasse abc 12"),
        ("हिन्दी भाषा।", "हिन्दी भाषा"),
        ("मैं", "मैं"),
        ("서울 대학교", "서울 대학교"),
        ("snake_case 3.14", "snake case 3 14"),
        ("!? …", ""),
    ],
)
def test_a_text_is_split_into_words(text: str, expected: str) -> None:
    assert split_words(text) == expected.split()


def test_words_have_the_same_number_everywhere_and_stop_words_have_none() -> None:
    columns = word_columns(["The cat, the dog", "", "dog"], "english")
    cat, dog, again = columns["words.values"].tolist()
    assert columns["words.lengths"].tolist() == [2, 0, 1]
    assert dog == again == word_numbers("Dog", "none")[0]
    assert cat not in (0, dog)


def test_stop_words_come_from_a_named_list_or_are_given() -> None:
    assert {"the", "what", "is"} <= load_stop_words("english")
    assert not {"cat", "bank"} & load_stop_words("english")
    assert load_stop_words("none") == frozenset()
    assert load_stop_words(("Der", "die")) == {"der", "die"}


def matrix(rows: list[list[int]]) -> BM25Matrix:
    terms = np.array([term for row in rows for term in row], dtype=np.int32)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return BM25Matrix(counted_words({"words.values": terms, "words.lengths": lengths}))


ROWS = st.lists(st.tuples(st.lists(st.integers(0, 11), max_size=9), st.booleans()), min_size=1, max_size=9)


@settings(max_examples=60, deadline=None)
@given(blocks=st.lists(ROWS, min_size=1, max_size=3), query=st.sets(st.integers(0, 15), max_size=5))
def test_scores_equal_its_formula(blocks: list[list[tuple[list[int], bool]]], query: set[int]) -> None:
    """sum of idf * tf / (tf + k1 * (1 - b + b * length / mean)), idf = ln(1 + (N - df + .5) / (df + .5))

    Over all rows of all blocks that are not deleted.
    """
    alive = [np.array([stays for _, stays in block]) for block in blocks]
    corpus = [row for block in blocks for row, stays in block if stays]
    mean = (sum(map(len, corpus)) / len(corpus) if corpus else 0) or 1

    def score(row: list[int]) -> float:
        total = 0.0
        for term in query & set(row):
            df = sum(term in other for other in corpus)
            tf = row.count(term)
            idf = math.log(1 + (len(corpus) - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + 1.2 * (0.3 + 0.7 * len(row) / mean))
        return total

    matrices = [matrix([row for row, _ in block]) for block in blocks]
    found = bm25_scores(matrices, alive, np.array(sorted(query)), BM25Settings(k1=1.2, b=0.7))
    kept = np.concatenate([scores[stays] for scores, stays in zip(found, alive, strict=True)])
    np.testing.assert_allclose(kept, [score(row) for row in corpus], rtol=1e-4, atol=1e-6)


OLD = [Document(f"old{i}", f"The old cat number {i} sleeps. It purrs.") for i in range(20)]
NEW = [Document(f"new{i}", f"A new dog number {i} barks. It runs.") for i in range(30)]


def test_the_words_of_a_saved_index_are_not_weighed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = HybridIndex.build(OLD + NEW, HashEncoder())
    index.save(tmp_path / "index")
    monkeypatch.setattr(table, "SMALL", 0)
    with monkeypatch.context() as patch:
        patch.setattr(Postings, "of", lambda *_: pytest.fail("was weighed again"))
        loaded = HybridIndex.load(tmp_path / "index", HashEncoder())
        assert loaded.search("old cat sleeps", 9) == index.search("old cat sleeps", 9)
        loaded.delete(["old3"])
        found = loaded.search("old cat sleeps", 9)
    rest = HybridIndex.build([d for d in OLD + NEW if d.id != "old3"], HashEncoder())
    expected = [(c.id, pytest.approx(c.score, rel=1e-5)) for c in rest.search("old cat sleeps", 9)]
    assert [(c.id, c.score) for c in found] == expected


def test_words_go_with_the_last_document_that_has_them(tmp_path: Path) -> None:
    """Also from the file of a saved index, which can be added to again."""
    index = HybridIndex.build(OLD + NEW, HashEncoder())
    index.delete([document.id for document in OLD])
    index.save(tmp_path / "index")
    HybridIndex.build(NEW, HashEncoder()).save(tmp_path / "new")
    words, expected_words = (
        load_file(next((tmp_path / name).glob("data-*")))["columns/words.values"] for name in ("index", "new")
    )
    assert words.tolist() == expected_words.tolist()
    loaded = HybridIndex.load(tmp_path / "index", HashEncoder())
    loaded.delete([document.id for document in NEW])
    loaded.save(tmp_path / "index")
    loaded = HybridIndex.load(tmp_path / "index", HashEncoder())
    assert loaded.document_ids == ()
    loaded.add(OLD)
    found, expected = (i.search("the old cat", 9) for i in (loaded, HybridIndex.build(OLD, HashEncoder())))
    assert [(c.id, c.score) for c in found] == [(c.id, pytest.approx(c.score)) for c in expected]
