"""ParetoRAG's weighting: the paper's formula by hand."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from precise_rag.encoders.geometry import geometry_of
from precise_rag.errors import InputError
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


def test_the_papers_formula_by_hand() -> None:
    """alpha * core + (1 - alpha) * context, plain dot product; alone in its passage: the core."""
    index = SentenceContextIndex.build(
        [PASSAGES], AxisEncoder(), alpha=0.8, context="encode", similarity="dot"
    )
    scores = {c.text: c.score for c in index.search("a", 4)}
    # context of B is "A C" = (1, 0, 1, 0) / sqrt 2; of A it is "B C", which is 0 on this axis
    assert scores == pytest.approx(
        {"Aa!": 0.8, "Bb!": 0.2 / math.sqrt(2), "Cc!": 0.2 / math.sqrt(2), "Dd!": 0}
    )
    assert {c.text: c.score for c in index.search("d", 1)} == pytest.approx({"Dd!": 1.0})


@pytest.mark.parametrize("context", ["mean", "encode"])
def test_the_weighted_sum_is_normalised_for_cosine(context: str) -> None:
    index = SentenceContextIndex.build([PASSAGES], AxisEncoder(), alpha=0.6, context=context)
    scores = {c.text: c.score for c in index.search("a", 4)}
    norm = math.sqrt(0.36 + 0.16)  # core and context are orthogonal here
    expected = {
        "Aa!": 0.6 / norm,
        "Bb!": 0.4 / math.sqrt(2) / norm,
        "Cc!": 0.4 / math.sqrt(2) / norm,
        "Dd!": 0,
    }
    assert scores == pytest.approx(expected, abs=1e-6)


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
    with pytest.raises(InputError, match=r"alpha must be between 0 .* and 1 .*, got 1\.5"):
        index.search("x", alpha=1.5)


def test_weighted_vectors_give_a_plain_store_the_same_ranking() -> None:
    documents = [Document("x", "Cats sleep. Dogs bark loudly.\n\nFish swim. Dogs run."), PASSAGES]
    index = SentenceContextIndex.build(documents, HashEncoder())
    pieces, vectors = zip(*index.weighted_vectors(), strict=True)
    query = HashEncoder().encode_queries(["dogs bark"])[0]
    scores = {piece.id: float(vector @ query) for piece, vector in zip(pieces, vectors, strict=True)}
    assert {c.id: c.score for c in index.search("dogs bark", 100)} == pytest.approx(scores, abs=1e-5)


def test_unknown_contexts_and_similarities_are_refused() -> None:
    with pytest.raises(InputError, match="context must be 'mean' or 'encode', got 'sum'"):
        SentenceContextIndex.build([], HashEncoder(), context="sum")
    with pytest.raises(InputError, match="similarity must be 'cosine' or 'dot', got 'l2'"):
        SentenceContextIndex.build([], HashEncoder(), similarity="l2")
