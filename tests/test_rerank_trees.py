import numpy as np
import pytest

from precise_rag.rerank.trees import Trees


def test_trees_agree_with_the_library_that_grew_them() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    random = np.random.default_rng(0)
    rows = random.normal(size=(600, 4)).astype(np.float32)
    rows[random.random(rows.shape) < 0.2] = np.nan
    label = (np.nan_to_num(rows[:, 0], nan=0.7) + np.nan_to_num(rows[:, 1] * rows[:, 2]) > 0.3).astype(int)
    model = ensemble.HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=9, random_state=0).fit(
        rows, label
    )
    assert Trees.from_sklearn(model)(rows) == pytest.approx(model.decision_function(rows), abs=1e-5)


def test_one_tree_by_hand() -> None:
    tree = Trees(
        {
            "feature": np.array([[1, 0, 0]], np.uint8),
            "threshold": np.array([[0.5, 0, 0]], np.float32),
            "missing_left": np.array([[1, 0, 0]], np.uint8),
            "left": np.array([[1, 1, 2]], np.uint8),
            "right": np.array([[2, 1, 2]], np.uint8),
            "value": np.array([[9.0, -1.0, 2.0]], np.float32),
        }
    )
    rows = np.array([[0, 0.5], [0, 0.6], [0, np.nan]], dtype=np.float32)
    assert tree(rows).tolist() == [-1.0, 2.0, -1.0]
