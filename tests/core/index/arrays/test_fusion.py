import math

import numpy as np
import pytest

from precise_rag.index.arrays.fusion import min_max, pooled, weighted_sum, z_score


def test_min_max_scales_to_0_and_1() -> None:
    np.testing.assert_allclose(min_max(np.array([2, 4, 3], dtype=np.float32)), [0, 1, 0.5])
    np.testing.assert_allclose(min_max(np.array([3, 3], dtype=np.float32)), [0, 0])


def test_fusion_uses_the_union_of_the_pools_and_the_true_scores_of_its_rows() -> None:
    dense = np.array([0.9, 0.5, 0.1, 0.7], dtype=np.float32)
    words = np.array([0.0, 8.0, 9.0, 1.0], dtype=np.float32)
    rows = pooled([dense, words], pool=1, drawn=np.negative)
    # best of each: rows 0 and 2; dense 0.9 and 0.1 become 1 and 0, words 0 and 9 become 0 and 1
    assert rows.tolist() == [0, 2]
    np.testing.assert_allclose(weighted_sum([dense[rows], words[rows]], [0.5, 0.5]), [0.5, 0.5], rtol=1e-6)
    rows = pooled([dense, words], pool=2, drawn=np.negative)
    fused = weighted_sum([dense[rows], words[rows]], [0.5, 0.5])
    # rows 0, 1, 2, 3: dense 1, .5, 0, .75; words 0, 8/9, 1, 1/9
    np.testing.assert_allclose(fused, [0.5, 0.25 + 4 / 9, 0.5, 0.375 + 1 / 18], rtol=1e-5)


def test_the_best_z_score_counts_standard_deviations_above_the_mean() -> None:
    assert z_score(np.array([0, 0, 0, 1], dtype=np.float32), max([0, 0, 0, 1])) == pytest.approx(
        0.75 / math.sqrt(3 / 16)
    )
    assert z_score(np.array([3, 3], dtype=np.float32), max([3, 3])) == pytest.approx(0)
