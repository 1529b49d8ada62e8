"""What a search returns, what a filter hides from its scores, and the sentences around a found one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from precise_rag.index import DatabaseIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.index.view import rows_around
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

STORY = Document("story", "A cat sits. A cat runs. It rained.\n\nThe sun rose. A cat sleeps.")


def test_a_passage_has_the_score_of_its_best_sentence() -> None:
    index = SentenceContextIndex.build([STORY], HashEncoder())
    sentence = index.search("cat runs", 1)[0]
    passage = index.search("cat runs", 5, returns="passage")
    assert [p.text for p in passage] == ["A cat sits. A cat runs. It rained.", "The sun rose. A cat sleeps."]
    assert passage[0].score == pytest.approx(sentence.score)
    assert [p.n_tokens for p in passage] == [8, 6]


def test_neighbours_are_merged_in_document_order() -> None:
    index = HybridIndex.build([STORY], HashEncoder())
    single = {c.text: c for c in index.search("cat sits runs", 3, alpha=1.0, returns="sentence")}
    assert set(single) == {"A cat sits.", "A cat runs.", "A cat sleeps."}
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs")
    merged = index.search("cat sits runs", 3, alpha=1.0, returns="sentence", merge_adjacent=True)
    assert [m.text for m in merged] == ["A cat sits. A cat runs.", "A cat sleeps."]
    best = max(single["A cat sits."].score, single["A cat runs."].score)
    assert merged[0].score == pytest.approx(best)
    assert merged[0].n_tokens == 6


def test_mixed_returns_the_passage_of_the_best_sentence_and_then_single_sentences() -> None:
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs")
    mixed = index.search("cat sleeps", 3)
    assert mixed[0].text == "The sun rose. A cat sleeps."
    assert mixed[0].n_tokens == 6
    assert {m.text for m in mixed[1:]} == {"A cat sits.", "A cat runs."}
    assert [m.score for m in mixed] == sorted((m.score for m in mixed), reverse=True)
    assert [m.text for m in index.search("cat sleeps", 1)] == [mixed[0].text]


def test_candidates_that_exceed_max_tokens_are_left_out() -> None:
    index = SentenceContextIndex.build([STORY], HashEncoder())
    full = index.search("cat", 5)
    assert sum(c.n_tokens or 0 for c in full) == 14
    kept = index.search("cat", 5, max_tokens=8)
    assert sum(c.n_tokens or 0 for c in kept) <= 8
    assert [c.id for c in kept] == [c.id for c in full if c.id in {k.id for k in kept}]
    assert index.search("cat", 5, max_tokens=1) == []


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
