"""ParetoRAG's weighting: the paper's formula by hand, by brute force, and as properties."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.errors import InputError
from precise_rag.index import HybridIndex, SentenceContextIndex
from precise_rag.index.arrays.context import SentenceContext
from precise_rag.index.arrays.fusion import fuse, min_max, standing_out
from precise_rag.index.arrays.groups import Groups
from precise_rag.index.arrays.passages import Passages, passage_ids
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray, IntArray, SentenceTable


class AxisEncoder(HashEncoder):
    """One axis a letter, so that every product can be worked out by hand."""

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
    encoder.calls.clear()
    for alpha in (0.0, 0.3, 1.0):
        fresh = SentenceContextIndex.build([document], HashEncoder(), alpha=alpha)
        got = index.search("dogs bark", 5, alpha=alpha)
        assert [(c.id, c.score) for c in got] == [(c.id, c.score) for c in fresh.search("dogs bark", 5)]
    assert encoder.calls == []
    alone = index.search("dogs bark", 5, alpha=1.0)
    assert [c.score for c in alone] == pytest.approx([c.scores["core"] for c in alone])
    with pytest.raises(InputError, match=r"alpha is 1\.5"):
        index.search("x", alpha=1.5)


def reference(
    vectors: FloatArray, groups: Sequence[Sequence[int]], weights: IntArray, alpha: float
) -> FloatArray:
    """The definition in loops and float64."""
    rows = np.array(vectors, dtype=np.float64)
    for group in groups:
        for i in group:
            total = sum(
                (weights[j] * np.asarray(vectors[j], np.float64) for j in group if j != i), np.zeros(1)
            )
            norm = np.linalg.norm(total)
            if len(group) > 1 and norm > 1e-3:
                mixed = alpha * vectors[i] + (1 - alpha) * total / norm
                rows[i] = mixed / np.linalg.norm(mixed)
    return rows.astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=8),
    alpha=st.sampled_from([0.0, 0.25, 0.6, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_mean_contexts_equal_the_definition(sizes: list[int], alpha: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    n = sum(sizes)
    vectors = random.normal(size=(n, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    weights = random.integers(1, 40, n)
    of_row = np.repeat(np.arange(len(sizes)), sizes)
    groups = Groups.by_change(of_row)
    context = SentenceContext.of_means({"vectors": vectors, "n_tokens": weights}, groups)
    members = [np.flatnonzero(of_row == g).tolist() for g in range(len(sizes))]
    expected = reference(vectors, members, weights, alpha)
    np.testing.assert_allclose(context.vectors(vectors, alpha), expected, atol=2e-4)
    query = random.normal(size=8).astype(np.float32)
    scores = context.scores(vectors @ query, alpha)
    np.testing.assert_allclose(scores, expected @ query, atol=2e-3)


def test_many_rows_are_read_in_slices_of_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(100, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    groups = Groups.by_change(np.sort(random.integers(0, 20, 100)))
    whole = SentenceContext.of_means({"vectors": vectors, "n_tokens": np.ones(100)}, groups)
    monkeypatch.setattr("precise_rag.index.arrays.context._SLICE", 7)
    sliced = SentenceContext.of_means({"vectors": vectors, "n_tokens": np.ones(100)}, groups)
    np.testing.assert_allclose(sliced.overlap, whole.overlap)
    np.testing.assert_allclose(sliced.residuals, whole.residuals)


def test_weighted_vectors_give_a_plain_store_the_same_ranking() -> None:
    documents = [Document("x", "Cats sleep. Dogs bark loudly.\n\nFish swim. Dogs run."), PASSAGES]
    index = SentenceContextIndex.build(documents, HashEncoder())
    pieces, vectors = zip(*index.weighted_vectors(), strict=True)
    query = HashEncoder().encode_queries(["dogs bark"])[0]
    scores = {piece.id: float(vector @ query) for piece, vector in zip(pieces, vectors, strict=True)}
    assert {c.id: c.score for c in index.search("dogs bark", 100)} == pytest.approx(scores, abs=1e-5)


STORY = Document("story", "A cat sits. A cat runs. It rained.\n\nThe sun rose. A cat sleeps.")


def test_passages_come_back_around_their_best_sentence() -> None:
    index = SentenceContextIndex.build([STORY], HashEncoder())
    sentence = index.search("cat runs", 1)[0]
    passage = index.search("cat runs", 5, returns="passage")
    assert [p.text for p in passage] == ["A cat sits. A cat runs. It rained.", "The sun rose. A cat sleeps."]
    assert passage[0].score == sentence.score
    assert [p.n_tokens for p in passage] == [8, 6]


def test_neighbours_are_merged_in_document_order() -> None:
    index = HybridIndex.build([STORY], HashEncoder())
    single = {c.text: c for c in index.search("cat sits runs", 3, alpha=1.0, returns="sentence")}
    assert set(single) == {"A cat sits.", "A cat runs.", "A cat sleeps."}
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs")
    merged = index.search("cat sits runs", 3, alpha=1.0, returns="sentence", merge_adjacent=True)
    assert [m.text for m in merged] == ["A cat sits. A cat runs.", "A cat sleeps."]
    assert merged[0].score == max(single["A cat sits."].score, single["A cat runs."].score)
    assert merged[0].n_tokens == 6


def test_the_best_sentence_brings_its_passage_and_the_others_come_alone() -> None:
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs")
    mixed = index.search("cat sleeps", 3)
    assert mixed[0].text == "The sun rose. A cat sleeps."
    assert mixed[0].n_tokens == 6
    assert {m.text for m in mixed[1:]} == {"A cat sits.", "A cat runs."}
    assert [m.score for m in mixed] == sorted((m.score for m in mixed), reverse=True)
    assert [m.text for m in index.search("cat sleeps", 1)] == [mixed[0].text]
    with pytest.raises(InputError, match="expected one of sentence, passage, mixed"):
        index.search("cat", returns="page")  # type: ignore[arg-type]


def test_passages_come_back_when_some_rows_are_outside_the_pool() -> None:
    index = HybridIndex.build([STORY], HashEncoder(), passages="paragraphs", pool=1)
    found = index.search("cat sleeps", 5, returns="passage")
    assert found[0].text == "The sun rose. A cat sleeps."


def test_hybrid_scores_follow_from_their_parts() -> None:
    """Cosines of sentence, passage mean and surroundings mean; BM25 the same; fused 0.6 to 0.4."""
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
    by_word = (
        min_max(np.array([c.scores["bm25"] for c in found], dtype=np.float32))
        + min_max(np.array([c.scores["bm25_passage"] for c in found], dtype=np.float32))
    ) / 3
    fused = 0.6 * min_max(dense) + 0.4 * min_max(by_word)
    assert [c.score for c in found] == pytest.approx(fused.tolist(), abs=1e-5)


def table(n_tokens: list[int], paragraphs: list[int]) -> SentenceTable:
    n = len(n_tokens)
    spans = np.stack([np.arange(n), np.arange(n) + 1], axis=1)
    return SentenceTable("t", spans, np.array(paragraphs), np.array(n_tokens))


@pytest.mark.parametrize(
    ("passages", "expected"),
    [
        ("paragraphs", [0, 0, 1, 2, 2, 2, 3]),
        ("sentences", [0, 1, 2, 3, 4, 5, 6]),
        (3, [0, 0, 0, 1, 1, 1, 2]),
        ("10 tokens", [0, 0, 0, 1, 2, 2, 2]),  # the long third paragraph is cut between sentences
        ("14 tokens", [0, 0, 0, 1, 1, 1, 2]),
        ("1 tokens", [0, 1, 2, 3, 4, 5, 6]),
        ("100 tokens", [0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_passages_are_whole_paragraphs_or_whole_sentences(passages: Passages, expected: list[int]) -> None:
    sentences = table([4, 3, 3, 8, 3, 2, 4], [0, 0, 1, 2, 2, 2, 3])
    assert passage_ids(Document("t", "x" * 7), sentences, passages).tolist() == expected


def test_max_tokens_leaves_out_what_does_not_fit() -> None:
    index = SentenceContextIndex.build([STORY], HashEncoder())
    full = index.search("cat", 5)
    assert sum(c.n_tokens or 0 for c in full) == 14
    kept = index.search("cat", 5, max_tokens=8)
    assert sum(c.n_tokens or 0 for c in kept) <= 8
    assert [c.id for c in kept] == [c.id for c in full if c.id in {k.id for k in kept}]
    assert index.search("cat", 5, max_tokens=1) == []


def test_min_max() -> None:
    assert min_max(np.array([2, 4, 3], dtype=np.float32)).tolist() == [0, 1, 0.5]
    assert min_max(np.array([3, 3], dtype=np.float32)).tolist() == [0, 0]


def test_fusion_takes_the_union_and_computes_what_is_missing() -> None:
    dense = np.array([0.9, 0.5, 0.1, 0.7], dtype=np.float32)
    words = np.array([0.0, 8.0, 9.0, 1.0], dtype=np.float32)
    fused = fuse([dense, words], [0.5, 0.5], pool=1)
    # best of each: rows 0 and 2; dense 0.9 and 0.1 become 1 and 0, words 0 and 9 become 0 and 1
    assert fused.tolist() == [0.5, -np.inf, 0.5, -np.inf]
    fused = fuse([dense, words], [0.5, 0.5], pool=2)
    # rows 0, 1, 2, 3: dense 1, .5, 0, .75; words 0, 8/9, 1, 1/9
    assert fused.tolist() == pytest.approx([0.5, 0.25 + 4 / 9, 0.5, 0.375 + 1 / 18])


def test_standing_out_is_counted_in_standard_deviations() -> None:
    assert standing_out(np.array([0, 0, 0, 1], dtype=np.float32)) == pytest.approx(0.75 / math.sqrt(3 / 16))
    assert standing_out(np.array([3, 3], dtype=np.float32)) == 0


class Bewildered(HashEncoder):
    """Tells every other sentence from the rest, and nothing more."""

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        sides = [int("odd" in text.lower()) for text in queries]
        return np.eye(2, self.dimension, dtype=np.float32)[sides]


def searched(n_sentences: int, encoder: HashEncoder, **options: float | bool) -> list[str]:
    facts = [f"{'Odd' if i % 2 else 'Even'} house w{i} stands here." for i in range(n_sentences)]
    index = HybridIndex.build([Document("street", "\n\n".join(facts))], encoder, **options)
    return [c.text for c in index.search("Which odd house is w40?", 5, returns="sentence")]


def test_an_encoder_that_tells_nothing_apart_does_not_count() -> None:
    """Half of the street is as near to the question as the best: one standard deviation above the mean."""
    words_alone = searched(120, Bewildered(), dense_weight=0.0)
    assert searched(120, Bewildered()) == words_alone != searched(120, Bewildered(), adaptive=False)
    assert searched(90, Bewildered()) == searched(90, Bewildered(), adaptive=False)


def test_an_encoder_that_finds_something_keeps_its_whole_weight() -> None:
    assert searched(120, HashEncoder()) == searched(120, HashEncoder(), adaptive=False)
