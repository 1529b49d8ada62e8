"""Hybrid search: its scores by hand, and the weight of the dense scores."""

from collections.abc import Sequence

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.index import HybridIndex
from precise_rag.index.arrays.fusion import min_max
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray

STORY = Document("story", "A cat sits. A cat runs. It rained.\n\nThe sun rose. A cat sleeps.")


def test_scores_follow_from_their_parts() -> None:
    """Means of three cosines, means of three BM25 scores, fused with weights 0.6 and 0.4."""
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs", surroundings="400 tokens")
    found = sorted(index.search("cat sleeps", 5, returns="sentence"), key=lambda c: c.start)
    vectors = HashEncoder().encode([c.text for c in found])
    query = HashEncoder().encode_queries(["cat sleeps"])[0]
    weights = np.array([c.n_tokens for c in found])

    def mean_cosine(first: int, last: int) -> float:
        mean = (vectors[first:last] * weights[first:last, None]).sum(axis=0)
        return float(mean @ query / np.linalg.norm(mean))

    wide = mean_cosine(0, 5)
    for row, candidate in enumerate(found):
        passage = mean_cosine(0, 3) if row < 3 else mean_cosine(3, 5)
        assert candidate.scores["core"] == pytest.approx(vectors[row] @ query, abs=1e-5)
        expected = (vectors[row] @ query + passage + wide) / 3
        assert candidate.scores["dense"] == pytest.approx(expected, abs=1e-5)
    dense = np.array([c.scores["dense"] for c in found], dtype=np.float32)
    bm25 = (
        min_max(np.array([c.scores["bm25"] for c in found], dtype=np.float32))
        + min_max(np.array([c.scores["bm25_passage"] for c in found], dtype=np.float32))
    ) / 3
    fused = 0.6 * min_max(dense) + 0.4 * min_max(bm25)
    assert [c.score for c in found] == pytest.approx(fused.tolist(), abs=1e-5)


def test_passages_are_found_when_some_rows_are_outside_the_pool() -> None:
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs", pool=1)
    found = index.search("cat sleeps", 5, returns="passage")
    assert found[0].text == "The sun rose. A cat sleeps."


class OddEncoder(HashEncoder):
    """Tells sentences with the word "odd" from the rest, and nothing more."""

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        sides = [int("odd" in text.lower()) for text in queries]
        return np.eye(2, self.dimension, dtype=np.float32)[sides]


def scored(
    n_sentences: int, encoder: HashEncoder, question: str = "Which odd house?", **options: float | bool
) -> dict[str, float]:
    """The score of each sentence for a question."""
    facts = [f"{'Odd' if i % 2 else 'Even'} house w{i} stands here." for i in range(n_sentences)]
    index = HybridIndex.build([Document("street", "\n\n".join(facts))], encoder, **options)
    found = index.search(question, n_sentences, returns="sentence")
    return {candidate.text: candidate.score for candidate in found}


def test_an_encoder_that_tells_nothing_apart_has_no_weight() -> None:
    """Half of the sentences have the best cosine, which is one standard deviation above the mean."""
    adapted = scored(120, OddEncoder())
    assert adapted == pytest.approx(scored(120, OddEncoder(), dense_weight=0.0))
    assert adapted != pytest.approx(scored(120, OddEncoder(), adaptive=False))


def test_the_weight_is_not_adapted_among_few_sentences() -> None:
    assert scored(90, OddEncoder()) == pytest.approx(scored(90, OddEncoder(), adaptive=False))


def test_an_encoder_that_finds_something_keeps_its_whole_weight() -> None:
    adapted = scored(120, HashEncoder(), "Who lives in w40?")
    assert adapted == pytest.approx(scored(120, HashEncoder(), "Who lives in w40?", adaptive=False))
    assert adapted != pytest.approx(scored(120, HashEncoder(), "Who lives in w40?", dense_weight=0.0))


@pytest.mark.parametrize(("name", "value"), [("dense_weight", 1.5), ("pool", 0), ("alpha", -0.1)])
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{name} must be .*, got {value}"):
        HybridIndex.build([], HashEncoder(), **{name: value})
