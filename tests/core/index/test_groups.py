"""Groups of rows: passages, and the contexts that sentences are scored with."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.index import DenseIndex, SentenceContextIndex, context
from precise_rag.index.context import chunk_vectors
from precise_rag.index.groups import Groups, Passages, passage_ids
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


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.6, 1.0])
@pytest.mark.parametrize("at_once", [7, 1_000])
def test_mean_contexts_equal_the_definition(
    at_once: int, alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of groups that are read in slices."""
    monkeypatch.setattr(context, "_SLICE", at_once)
    choose, encoder = random.Random(alpha), HashEncoder(16)
    groups = [[0], [1, 2], [3, 4, 5], [6, 7, 8, 9, 10, 11], [12], [13, 14, 15, 16]]
    texts = [" ".join(f"Word{choose.randint(0, 30)}" for _ in range(choose.randint(1, 9))) for _ in range(17)]
    text = "\n\n".join(" ".join(f"{texts[i]}!" for i in group) for group in groups)
    index = SentenceContextIndex.build([Document("d", text)], encoder, alpha=alpha, passages="paragraphs")
    found = sorted(index.search("word3 word7", 100), key=lambda c: c.start)
    vectors = encoder.encode([c.text for c in found])
    expected = reference(vectors, groups, np.array([c.n_tokens for c in found]), alpha)
    pieces, weighted = zip(*index.weighted_vectors(), strict=True)
    assert [piece.id for piece in pieces] == [c.id for c in found]
    np.testing.assert_allclose(weighted, expected, atol=2e-4)
    scores = expected @ encoder.encode_queries(["word3 word7"])[0]
    np.testing.assert_allclose([c.score for c in found], scores, atol=2e-3)


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
    rng = np.random.default_rng(seed)
    vectors = np.abs(rng.normal(size=(len(n_tokens), 8))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    edges = np.flatnonzero(rng.random(len(n_tokens)) < 0.4)
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
