import numpy as np
import pytest

from precise_rag.segmentation.features import closeness, cohesion, shifted
from precise_rag.vectors import unit_rows


def test_cohesion_and_closeness_compare_windows_of_sentences() -> None:
    rows = unit_rows(np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32))
    cosines, lengths = cohesion(rows, (1, 2, 4)), closeness(rows, (1, 2, 4))
    assert (cosines.shape, lengths.shape) == ((9, 3), (9, 4))
    for column, window in enumerate((1, 2, 4)):
        for gap in range(8):
            before = rows[max(gap + 1 - window, 0) : gap + 1].mean(0)
            after = rows[gap + 1 : gap + 1 + window].mean(0)
            norms = np.linalg.norm(before), np.linalg.norm(after)
            assert cosines[gap, column] == pytest.approx(before @ after / np.prod(norms), abs=1e-5)
            if window > 1:
                assert lengths[gap, 2 * column - 2 : 2 * column] == pytest.approx(norms, abs=1e-5)


def test_shifted_moves_zeros_in() -> None:
    rows = np.array([[1.0], [2.0], [3.0]], dtype=np.float32)
    assert [shifted(rows, k).ravel().tolist() for k in (1, -2, 0)] == [[0, 1, 2], [3, 0, 0], [1, 2, 3]]
