"""Vectors stored in fewer bits score nearly the same."""

from pathlib import Path

import numpy as np
import pytest

from precise_rag.index import (
    DenseIndex,
    DocumentIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
)
from precise_rag.index.arrays.vectors import dot, read_vectors, vector_columns
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

OLD = [Document(f"old{i}", f"The old cat number {i} sleeps. It purrs.") for i in range(20)]
NEW = [Document(f"new{i}", f"A new dog number {i} barks. It runs.") for i in range(30)]


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-6), ("int8", 0.02)])
def test_smaller_vectors_score_nearly_the_same(precision: str, tolerance: float) -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(40, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    columns = vector_columns(rows, precision)
    np.testing.assert_allclose(read_vectors(columns, slice(3, 9)), rows[3:9], atol=tolerance)
    np.testing.assert_allclose(read_vectors(columns, np.array([5, 1])), rows[[5, 1]], atol=tolerance)
    np.testing.assert_allclose(dot(columns, rows[0]), rows @ rows[0], atol=2 * tolerance)


@pytest.mark.parametrize("kind", [DenseIndex, SentenceContextIndex, WordSentenceIndex, HybridIndex])
def test_every_index_of_vectors_takes_a_precision(kind: type[DocumentIndex], tmp_path: Path) -> None:
    exact = kind.build(OLD + NEW, HashEncoder())
    small = kind.build(OLD + NEW, HashEncoder(), precision="int8")
    small.save(tmp_path / "index")
    small = kind.load(tmp_path / "index", HashEncoder())
    assert small._rows.parts[0].segment.collection.columns["vectors"].dtype == np.int8
    expected = {c.id: c.score for c in exact.search("old cat sleeps", 200)}
    found = {c.id: c.score for c in small.search("old cat sleeps", 200)}
    assert found == pytest.approx(expected, abs=0.03)
