from dataclasses import replace

from precise_rag import Document, HybridIndex, SentenceContextIndex
from precise_rag.index.rows.neighbours import rows_around
from precise_rag.testing import HashEncoder

TEXT = "One is here. Two is here.\n\nThree is here. Four is here. Five is here. Six is here."


def test_rows_around_are_joined_where_they_meet():
    assert rows_around([5, 1], 10, 1) == [(0, 3), (4, 7)]
    assert rows_around([5, 2], 10, 1) == [(1, 7)]
    assert rows_around([0, 9], 10, 2) == [(0, 3), (7, 10)]
    assert rows_around([], 10, 2) == []


def test_neighbours_are_the_sentences_of_the_index():
    for kind in (HybridIndex, SentenceContextIndex):
        index = kind.build([Document("a", "Zero."), Document("b", TEXT, {"page": 1})], HashEncoder())
        found = [c for c in index.search("Three", 10, returns="sentence") if c.text == "Three is here."]
        (stretch,) = index.neighbours(found, 1)
        assert [s.text for s in stretch.sentences] == ["Two is here.", "Three is here.", "Four is here."]
        assert stretch.text == "Two is here.\n\nThree is here. Four is here."
        assert all(TEXT[s.start : s.end] == s.text and s.metadata == {"page": 1} for s in stretch.sentences)


def test_what_is_no_sentence_of_the_index_has_no_neighbours():
    index = HybridIndex.build([Document("b", TEXT)], HashEncoder())
    (first, *_) = index.search("Three", 1, returns="sentence")
    assert index.neighbours([replace(first, doc_id="other"), replace(first, end=first.end - 1)], 2) == []
    assert index.neighbours([], 2) == []
