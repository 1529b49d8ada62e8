"""Dot products by numpy and by torch agree."""

import sys
from pathlib import Path

import numpy as np
import pytest

from precise_rag.errors import InputError, MissingExtra
from precise_rag.index import (
    DenseIndex,
    DocumentIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    load_index,
)
from precise_rag.index.arrays.products import load_products
from precise_rag.index.arrays.vectors import vector_columns
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.vectors import clustered

OLD = [Document(f"old{i}", f"The old cat number {i} sleeps. It purrs.") for i in range(20)]
NEW = [Document(f"new{i}", f"A new dog number {i} barks. It runs.") for i in range(30)]


def test_torch_multiplies_as_numpy_does(tmp_path: Path) -> None:
    """Each precision's values and order, ties in row order, and only on devices that are there."""
    torch = pytest.importorskip("torch")
    rows = np.concatenate([clustered(300), clustered(300)])
    query = clustered(1, seed=1)[0]
    for precision, tolerance in (("float32", 1e-6), ("float16", 2e-3), ("int8", 2e-3)):
        columns = vector_columns(rows, precision)  # type: ignore[arg-type]
        numpy_, torch_ = load_products(columns, "numpy"), load_products(columns, "torch:cpu")
        np.testing.assert_allclose(torch_.all(query), numpy_.all(query), atol=tolerance)
        for top_k in (1, 7, 1000):
            expected, scores = numpy_.best(query, top_k)
            found, values = torch_.best(query, top_k)
            np.testing.assert_allclose(values, scores, atol=tolerance)
            if precision == "float32":
                assert found.tolist() == expected.tolist()
    index = DenseIndex.build(OLD, HashEncoder(), backend="torch")
    index.save(tmp_path / "index")
    assert load_index(tmp_path / "index", HashEncoder(), backend="numpy").settings.backend == "numpy"
    with pytest.raises(InputError, match="chunks cannot change in a saved DenseIndex"):
        DenseIndex.load(tmp_path / "index", HashEncoder(), chunks="sentences")
    with pytest.raises(InputError, match=r"backend must be 'numpy', 'torch', .*, got 'cuda'"):
        DenseIndex.build([], HashEncoder(), backend="cuda")
    missing = f"torch:cuda:{torch.cuda.device_count()}"
    with pytest.raises(InputError, match=rf"backend is '{missing}' but torch .* sees"):
        DenseIndex.build(OLD, HashEncoder(), backend=missing).search("cat")


def test_without_torch_the_backend_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    index = DenseIndex.build(OLD, HashEncoder(), backend="torch")
    with pytest.raises(MissingExtra, match=r"pip install 'precise-rag\[torch\]'"):
        index.search("cat")


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [DenseIndex, SentenceContextIndex, WordSentenceIndex, HybridIndex])
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("float16", 5e-3), ("int8", 0.05)])
def test_cuda_scores_as_numpy_does(kind: type[DocumentIndex], precision: str, tolerance: float) -> None:
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no CUDA device")
    exact = kind.build(OLD + NEW, HashEncoder())
    index = kind.build(OLD + NEW, HashEncoder(), precision=precision, backend="torch:cuda")
    expected = {c.id: c.score for c in exact.search("old cat sleeps", 200)}
    found = {c.id: c.score for c in index.search("old cat sleeps", 200)}
    assert found == pytest.approx(expected, abs=tolerance)
