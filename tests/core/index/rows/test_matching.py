"""What a filter hides from the scores of a search."""

from typing import Any

import numpy as np
import pytest

from precise_rag.index import DocumentIndex, HybridIndex, WordSentenceIndex
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
    snapshot = index._ready()
    assert len(snapshot.narrowed) < 100
