"""What a filter hides from the scores of a search, and the sentences around a found one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from precise_rag.index import DocumentIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.index.view import rows_around
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

MINE = [
    Document(f"mine{i}", f"The {animal} sleeps on the mat. It eats {food} every day.", {"tenant": "me"})
    for i, (animal, food) in enumerate([("cat", "fish"), ("dog", "meat"), ("cow", "grass")])
]
THEIRS = [
    Document(f"theirs{i}", "The cat sleeps. " * (i + 1) + "Secret fish.", {"tenant": "them"})
    for i in range(40)
]
QUERY = "Which cat eats fish?"


def found(index: DocumentIndex, **options: Any) -> dict[str, float]:
    return {candidate.id: candidate.score for candidate in index.search(QUERY, 100, **options)}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (HybridIndex, {}),
        (WordSentenceIndex, {"max_candidates": 3}),
    ],
)
def test_others_documents_leave_no_trace_with_matching_statistics(
    kind: type[DocumentIndex], settings: dict[str, Any]
) -> None:
    alone = kind.build(MINE, HashEncoder(), **settings)
    index = kind.build([*THEIRS, *MINE], HashEncoder(), **settings, filter_statistics="matching")
    for _ in range(2):
        assert found(index, filter={"tenant": "me"}) == pytest.approx(found(alone), rel=1e-5)
    index.delete(["mine0"])
    alone.delete(["mine0"])
    assert found(index, filter={"tenant": "me"}) == pytest.approx(found(alone), rel=1e-5)


def test_shared_statistics_are_word_counts_alone() -> None:
    """Ranges of scores are those of the documents that match: the best of them has the full score."""
    index = HybridIndex.build([*THEIRS, *MINE], HashEncoder(), adaptive=False)
    best = next(iter(found(index, filter={"tenant": "me"}).values()))
    assert best == pytest.approx(1.0, abs=0.25)
    assert np.isfinite(list(found(index, filter={"tenant": "me"}).values())).all()


def test_many_filters_are_not_all_remembered() -> None:
    index = HybridIndex.build(MINE, HashEncoder(), filter_statistics="matching")
    for year in range(100):
        assert found(index, filter={"$or": [{"tenant": "me"}, {"year": year}]})
    assert len(index._ready().narrowed) < 100


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
