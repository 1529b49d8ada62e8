"""Groups of rows: passages, and the headings and contexts that sentences are scored with."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.index import DenseIndex, SentenceContextIndex, context
from precise_rag.index.context import GroupMeans, SentenceContexts, chunk_vectors, group_norms
from precise_rag.index.groups import Groups, Passages, passage_ids
from precise_rag.index.headings import WEIGHT, Headings, heading_columns
from precise_rag.index.table import Block
from precise_rag.index.words import word_numbers
from precise_rag.testing import HashEncoder
from precise_rag.types import Chunk, Document, FloatArray, IntArray, SentenceTable


def test_groups_begin_where_a_key_changes_and_their_best_rows_are_found() -> None:
    groups = Groups.by_change(np.array([0, 0, 1, 1, 1]), np.array([[5, 9], [5, 9], [5, 9], [5, 8], [5, 8]]))
    assert groups.starts.tolist() == [0, 2, 3]
    assert groups.of_row.tolist() == [0, 0, 1, 2, 2]
    assert groups.sizes.tolist() == [2, 1, 2]
    spans = np.array([[0, 2], [3, 5], [6, 8], [9, 11], [12, 14]])
    assert groups.spans(spans).tolist() == [[0, 5], [6, 8], [9, 14]]
    assert groups.sums(np.array([1, 2, 3, 4, 5])).tolist() == [3, 3, 9]
    scores = np.array([0.1, 0.6, 0.2, 0.9, 0.8], dtype=np.float32)
    assert groups.best_rows(scores, 2).tolist() == [3, 1]
    assert groups.best_rows(scores, 9).tolist() == [3, 1, 2]


def unit_vectors(n: int, dimension: int, seed: int = 0) -> FloatArray:
    vectors = np.random.default_rng(seed).normal(size=(n, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


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


@dataclass(frozen=True)
class Pairs:
    """A segmenter: two sentences per chunk."""

    name: str = "pairs"

    def segment(self, text: Document, table: SentenceTable | None = None) -> list[Chunk]:
        assert table is not None
        starts = [*table.spans[::2, 0].tolist(), len(text.text)]
        return [Chunk(text.id, a, b, text.text[a:b]) for a, b in pairwise(starts)]


def test_a_segmenter_makes_passages_and_chunks() -> None:
    document = Document("a", "One cat. Two dogs. Three owls.")
    index = SentenceContextIndex.build([document], HashEncoder(), passages=Pairs())
    passages = {c.text: c.passage for c in index.search("cat", 3)}
    assert passages == {"One cat.": (0, 18), "Two dogs.": (0, 18), "Three owls.": (19, 30)}
    chunks = DenseIndex.build([document], HashEncoder(), chunks=Pairs()).search("cat", 3)
    assert [c.text for c in chunks] == ["One cat. Two dogs.", "Three owls."]


ABOVE = [[(), (), ("Pumps",)], [("Pumps", "Care"), ("Pumps", "Care"), ("Pumps",)]]
"""What stands above the rows of two documents."""


def headed() -> tuple[Block, Headings, list[str]]:
    """A block of two documents, its headings, and what was encoded for them."""
    encoded: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        encoded.extend(texts)
        return np.eye(4, dtype=np.float32)[: len(texts)]

    texts = ["First.\n# Pumps\nThird.", "# Pumps\n## Care\nFourth. Fifth.\n# Pumps\nSixth."]
    spans = [[(0, 3), (3, 6), (15, 21)], [(16, 23), (24, 30), (39, 45)]]
    documents = [Document(name, text) for name, text in zip("ab", texts, strict=True)]
    rows = [
        {"spans": np.array(its), **columns}
        for its, columns in zip(spans, heading_columns(ABOVE, encode, "none", 4), strict=True)
    ]
    block = Block.of(documents, rows)
    headings = Headings.of(block)
    assert headings is not None
    return block, headings, encoded


def test_each_distinct_heading_is_encoded_once_and_kept_where_it_begins() -> None:
    block, headings, encoded = headed()
    assert encoded == ["Pumps", "Pumps > Care"]
    assert block.columns["heading_vectors.lengths"].tolist() == [1, 0, 1, 1, 0, 1]
    assert headings.of_row.tolist() == [0, 0, 1, 2, 2, 3]
    assert headings.scores(np.array([1, 2, 0, 0], dtype=np.float32)).tolist() == [0, 1, 2, 1]
    assert [headings.above(row) for row in range(6)] == [above for rows in ABOVE for above in rows]


def test_groups_have_the_words_of_their_headings() -> None:
    _, headings, _ = headed()
    words, groups = headings.words_of(Groups.by_change(np.array([0, 0, 0, 1, 2, 2])))
    pumps, care = word_numbers("pumps care", "none").tolist()
    assert words.tolist() == [pumps, pumps, care, pumps, care, pumps]
    assert groups.tolist() == [0, 1, 1, 2, 2, 2]


def test_a_heading_counts_as_one_more_sentence_of_a_mean() -> None:
    _, headings, _ = headed()
    vectors = unit_vectors(6, 4)
    tokens = np.array([3, 5, 2, 7, 1, 4])
    found = {"vectors": vectors, "n_tokens": tokens}
    groups = Groups.by_change(np.array([0, 0, 0, 1, 1, 2]))
    (query,) = unit_vectors(1, 4, seed=1)
    means = GroupMeans.of(found, groups, group_norms(found, groups, headings), headings)
    scores = means.scores(vectors @ query, headings.scores(query))
    some = means.scores_of(np.array([4, 1]), vectors @ query, headings.scores(query))
    np.testing.assert_allclose(some, scores[[4, 1]], rtol=1e-6)
    care = np.eye(4)[1]
    mean = (vectors[3:5] * tokens[3:5, None]).sum(axis=0) + WEIGHT * care
    np.testing.assert_allclose(scores[3:5], mean @ query / np.linalg.norm(mean), rtol=1e-5)
    plain = (vectors[:3] * tokens[:3, None]).sum(axis=0)
    np.testing.assert_allclose(scores[:3], plain @ query / np.linalg.norm(plain), rtol=1e-5)


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
    vectors = unit_vectors(sum(sizes), 8, seed)
    weights = np.random.default_rng(seed).integers(1, 40, len(vectors))
    of_row = np.repeat(np.arange(len(sizes)), sizes)
    groups = Groups.by_change(of_row)
    contexts = SentenceContexts.of_means({"vectors": vectors, "n_tokens": weights}, groups)
    members = [np.flatnonzero(of_row == g).tolist() for g in range(len(sizes))]
    expected = reference(vectors, members, weights, alpha)
    np.testing.assert_allclose(contexts.vectors(vectors, alpha), expected, atol=2e-4)
    (query,) = unit_vectors(1, 8, seed + 1)
    scores = contexts.scores(vectors @ query, alpha)
    np.testing.assert_allclose(scores, expected @ query, atol=2e-3)


def test_many_rows_are_read_in_slices_of_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit_vectors(100, 4)
    groups = Groups.by_change(np.sort(np.random.default_rng(0).integers(0, 20, 100)))
    whole = SentenceContexts.of_means({"vectors": vectors, "n_tokens": np.ones(100)}, groups)
    monkeypatch.setattr("precise_rag.index.context._SLICE", 7)
    sliced = SentenceContexts.of_means({"vectors": vectors, "n_tokens": np.ones(100)}, groups)
    np.testing.assert_allclose(sliced.overlap, whole.overlap)
    np.testing.assert_allclose(sliced.residuals, whole.residuals)


def by_hand(vectors, n_tokens, start, end, alpha, reach):
    """The module's formula, sentence by sentence."""
    before, first = 0, start
    while first and before + n_tokens[first - 1] <= reach:
        first -= 1
        before += n_tokens[first]
    after, behind = 0, end
    while behind < len(vectors) and after + n_tokens[behind] <= reach:
        after += n_tokens[behind]
        behind += 1
    own = sum(n_tokens[i] * vectors[i] for i in range(start, end))
    own = own / np.linalg.norm(own)
    others = [i for i in range(first, behind) if not start <= i < end]
    if others:
        around = sum(n_tokens[i] * vectors[i] for i in others)
        own = alpha * own + (1 - alpha) * around / np.linalg.norm(around)
    return own / np.linalg.norm(own)


@settings(deadline=None)
@given(
    n_tokens=st.lists(st.integers(1, 90), min_size=1, max_size=12),
    alpha=st.sampled_from([0.0, 0.3, 0.6, 1.0]),
    seed=st.integers(0, 1000),
)
def test_chunk_vectors_equal_the_formula(n_tokens, alpha, seed):
    vectors = np.abs(unit_vectors(len(n_tokens), 8, seed))
    edges = np.flatnonzero(np.random.default_rng(seed).random(len(n_tokens)) < 0.4)
    starts = np.unique(np.concatenate([[0], edges]))
    ends = np.append(starts[1:], len(n_tokens))
    found = chunk_vectors(vectors, np.array(n_tokens), starts, ends, alpha=alpha)
    expected = [
        by_hand(vectors, n_tokens, start, end, alpha, context._REACH)
        for start, end in zip(starts, ends, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float32


def test_sentences_out_of_reach_do_not_count(monkeypatch):
    monkeypatch.setattr(context, "_REACH", 10)
    vectors = np.eye(3, dtype=np.float32)
    one_each = np.arange(3), np.arange(1, 4)
    near = chunk_vectors(vectors, np.array([10, 5, 10]), *one_each, alpha=0.5)
    assert near[0][2] == pytest.approx(0, abs=1e-6)
    assert near[0][1] > 0.1
    assert (near[1] > 0.1).all()
    far = chunk_vectors(vectors, np.array([11, 11, 11]), *one_each, alpha=0.5)
    np.testing.assert_allclose(far, vectors, atol=1e-6)
