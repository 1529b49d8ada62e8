"""What a filter hides from the scores of a search, and the sentences around a found one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from precise_rag.index import DatabaseIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.index.view import rows_around
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

MINE = [
    Document(f"mine{i}", f"The {animal} sleeps on the mat. It eats {food} every day.", {"tenant": "me"})
    for i, (animal, food) in enumerate([("cat", "fish"), ("dog", "meat"), ("cow", "grass")])
]
THEIRS = [
    Document(f"theirs{i}", "Which cat eats fish? The cat sleeps. " * (i + 1), {"tenant": "them"})
    for i in range(30)
]
QUERY, MY_TENANT = "Which cat eats fish?", {"tenant": "me"}


def made(kind: Any, documents: list[Document], request: pytest.FixtureRequest, **settings: Any) -> Any:
    if kind is DatabaseIndex:
        settings["location"] = request.getfixturevalue("new_location")()
    return kind.build(documents, HashEncoder(), **settings)


def found(index: Any, **options: Any) -> dict[tuple[str, str], float]:
    """The scores of what is found, and those that they are made of."""
    candidates = index.search(QUERY, 100, **options)
    return {(c.id, name): s for c in candidates for name, s in {"score": c.score, **c.scores}.items()}


IN_DATABASE = pytest.param(DatabaseIndex, {}, marks=[pytest.mark.long, pytest.mark.services])


@pytest.mark.parametrize(
    ("kind", "settings"), [(HybridIndex, {}), (WordSentenceIndex, {"max_candidates": 3}), IN_DATABASE]
)
def test_others_documents_leave_no_trace_with_matching_statistics(
    kind: Any, settings: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    alone = made(kind, MINE, request, **settings)
    index = made(kind, [*THEIRS, *MINE], request, **settings, filter_statistics="matching")
    for gone in ("mine0", "mine1"):
        assert found(index, filter=MY_TENANT) == pytest.approx(found(alone), rel=1e-4, abs=1e-5)
        assert found(index, filter=MY_TENANT) == pytest.approx(found(alone), rel=1e-4, abs=1e-5)
        for changed in (alone, index):
            changed.delete([gone])
            changed.add([Document("mine4", "A lion eats. The cat hides.", MY_TENANT)])


@pytest.mark.parametrize(("kind", "settings"), [(HybridIndex, {}), IN_DATABASE])
def test_shared_statistics_are_word_counts_alone(
    kind: Any, settings: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    """Words that others use are worth less; ranges of scores are those of the documents that match."""
    index = made(kind, [*THEIRS, *MINE], request, adaptive=False)
    alone = found(made(kind, MINE, request, adaptive=False), returns="sentence")
    shared = found(index, filter=MY_TENANT, returns="sentence")
    assert shared.keys() == alone.keys()
    for key, score in alone.items():
        if key[1] == "dense":
            assert shared[key] == pytest.approx(score, rel=1e-4, abs=1e-5)
    most, most_alone = (max(s for key, s in each.items() if key[1] == "bm25") for each in (shared, alone))
    assert most < most_alone
    assert max(s for key, s in shared.items() if key[1] == "score") == pytest.approx(1.0, abs=0.25)
    assert np.isfinite(list(shared.values())).all()


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


def test_neighbours_are_the_sentences_of_the_index_and_others_have_none():
    for kind in (HybridIndex, SentenceContextIndex):
        index = kind.build([Document("a", "Zero."), Document("b", TEXT, {"page": 1})], HashEncoder())
        found = [c for c in index.search("Three", 10, returns="sentence") if c.text == "Three is here."]
        (stretch,) = index.neighbours(found, 1)
        assert [s.text for s in stretch.sentences] == ["Two is here.", "Three is here.", "Four is here."]
        assert stretch.text == "Two is here.\n\nThree is here. Four is here."
        assert all(TEXT[s.start : s.end] == s.text and s.metadata == {"page": 1} for s in stretch.sentences)
        (first,) = index.search("Three", 1, returns="sentence")
        assert index.neighbours([replace(first, doc_id="other"), replace(first, end=first.end - 1)], 2) == []
        assert index.neighbours([], 2) == []
