import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.index.arrays import chunk_vectors as module
from precise_rag.index.arrays.chunk_vectors import chunk_vectors


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
        by_hand(vectors, n_tokens, start, end, alpha, module._REACH)
        for start, end in zip(starts, ends, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float32


def test_sentences_out_of_reach_do_not_count(monkeypatch):
    monkeypatch.setattr(module, "_REACH", 10)
    vectors = np.eye(3, dtype=np.float32)
    one_each = np.arange(3), np.arange(1, 4)
    near = chunk_vectors(vectors, np.array([10, 5, 10]), *one_each, alpha=0.5)
    assert near[0][2] == pytest.approx(0, abs=1e-6)
    assert near[0][1] > 0.1
    assert (near[1] > 0.1).all()
    far = chunk_vectors(vectors, np.array([11, 11, 11]), *one_each, alpha=0.5)
    np.testing.assert_allclose(far, vectors, atol=1e-6)
