"""ParetoRAG's weighting: the paper's formula by hand."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from precise_rag.encoders.geometry import geometry_of
from precise_rag.index import SentenceContextIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray


class AxisEncoder(HashEncoder):
    """One axis per letter, so that every product can be worked out by hand."""

    def __init__(self) -> None:
        super().__init__(4)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        rows = np.array([[text.lower().count(c) for c in "abcd"] for text in queries], dtype=np.float32)
        return rows.reshape(-1, 4) / np.maximum(np.linalg.norm(rows.reshape(-1, 4), axis=1, keepdims=True), 1)


PASSAGES = Document("p", "Aa! Bb! Cc!\n\nDd!")


@pytest.mark.parametrize(
    ("similarity", "context", "alpha", "norm"),
    [
        ("dot", "encode", 0.8, 1.0),
        # core and context are orthogonal here
        ("cosine", "encode", 0.6, math.sqrt(0.36 + 0.16)),
        ("cosine", "mean", 0.6, math.sqrt(0.36 + 0.16)),
    ],
)
def test_the_papers_formula_by_hand(similarity: str, context: str, alpha: float, norm: float) -> None:
    """alpha * core + (1 - alpha) * context, of unit length for cosine; alone in its passage: the core."""
    index = SentenceContextIndex.build(
        [PASSAGES], AxisEncoder(), alpha=alpha, context=context, similarity=similarity
    )
    scores = {c.text: c.score for c in index.search("a", 4)}
    # context of B is "A C" = (1, 0, 1, 0) / sqrt 2; of A it is "B C", which is 0 on this axis
    near = (1 - alpha) / math.sqrt(2) / norm
    assert scores == pytest.approx({"Aa!": alpha / norm, "Bb!": near, "Cc!": near, "Dd!": 0}, abs=1e-6)
    assert {c.text: c.score for c in index.search("d", 1)} == pytest.approx({"Dd!": 1.0})


def test_alpha_changes_at_query_time_without_encoding() -> None:
    encoder = HashEncoder()
    document = Document("x", "Cats sleep. Dogs bark loudly. Owls hoot.\n\nFish swim. Dogs run.")
    index = SentenceContextIndex.build([document], encoder)
    geometry_of(encoder)  # is measured once, by sentences of its own
    encoder.calls.clear()
    for alpha in (0.0, 0.3, 1.0):
        fresh = SentenceContextIndex.build([document], HashEncoder(), alpha=alpha)
        expected = {c.id: c.score for c in fresh.search("dogs bark", 5)}
        found = {c.id: c.score for c in index.search("dogs bark", 5, alpha=alpha)}
        assert found == pytest.approx(expected)
    assert encoder.calls == []
    alone = index.search("dogs bark", 5, alpha=1.0)
    assert [c.score for c in alone] == pytest.approx([c.scores["core"] for c in alone])


def test_weighted_vectors_give_a_plain_store_the_same_ranking() -> None:
    documents = [Document("x", "Cats sleep. Dogs bark loudly.\n\nFish swim. Dogs run."), PASSAGES]
    index = SentenceContextIndex.build(documents, HashEncoder())
    pieces, vectors = zip(*index.weighted_vectors(), strict=True)
    query = HashEncoder().encode_queries(["dogs bark"])[0]
    scores = {piece.id: float(vector @ query) for piece, vector in zip(pieces, vectors, strict=True)}
    assert {c.id: c.score for c in index.search("dogs bark", 100)} == pytest.approx(scores, abs=1e-5)
