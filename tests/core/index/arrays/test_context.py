"""The arithmetic of contexts against their definition in loops."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.index.arrays.context import SentenceContexts
from precise_rag.index.arrays.groups import Groups
from precise_rag.types import FloatArray, IntArray


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
    contexts = SentenceContexts.of_means({"vectors": vectors, "n_tokens": weights}, groups)
    members = [np.flatnonzero(of_row == g).tolist() for g in range(len(sizes))]
    expected = reference(vectors, members, weights, alpha)
    np.testing.assert_allclose(contexts.vectors(vectors, alpha), expected, atol=2e-4)
    query = random.normal(size=8).astype(np.float32)
    scores = contexts.scores(vectors @ query, alpha)
    np.testing.assert_allclose(scores, expected @ query, atol=2e-3)


def test_many_rows_are_read_in_slices_of_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(100, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    groups = Groups.by_change(np.sort(random.integers(0, 20, 100)))
    whole = SentenceContexts.of_means({"vectors": vectors, "n_tokens": np.ones(100)}, groups)
    monkeypatch.setattr("precise_rag.index.arrays.context._SLICE", 7)
    sliced = SentenceContexts.of_means({"vectors": vectors, "n_tokens": np.ones(100)}, groups)
    np.testing.assert_allclose(sliced.overlap, whole.overlap)
    np.testing.assert_allclose(sliced.residuals, whole.residuals)
