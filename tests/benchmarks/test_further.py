import numpy as np
import pytest

from benchmarks.segmentation import further
from precise_rag.segmentation.training.labelled_documents import UNKNOWN, LabelledDocument


def documents(n: int) -> list[LabelledDocument]:
    labels = np.array([1, 0, 0, 1, UNKNOWN], dtype=np.int8)
    return [LabelledDocument(f"{i}", "d", ("a",) * 6, labels, np.full(5, UNKNOWN, np.int8)) for i in range(n)]


def test_figures_and_their_differences() -> None:
    """Logits of 0 cost log 2 and have an area of one half; the same labels twice make no interval."""
    unsure = [np.zeros((5, 2))] * 8
    right = [np.array([[2.0, 0], [-2, 0], [-2, 0], [2, 0], [0, 0]])] * 8
    found = further.compare(documents(8), unsure, right, np.random.default_rng(0))
    before, after, difference, low, high = found["loss"]
    assert before == pytest.approx(np.log(2), abs=1e-4)
    assert after == pytest.approx(np.log1p(np.exp(-2)), abs=1e-4)
    assert difference == low == high
    assert found["paragraph AUC"][:2] == [0.5, 1.0]
    assert further.is_worse(found) == []
    worse = further.compare(documents(8), right, unsure, np.random.default_rng(0))
    assert further.is_worse(worse) == ["loss", "paragraph AUC"]
    rows = [{"file": "f", "trained on": 20, "tested on": 8, "epoch": 1, **of} for of in (found, worse)]
    assert "Of 2 collections 1 are significantly worse" in further.render(rows)
