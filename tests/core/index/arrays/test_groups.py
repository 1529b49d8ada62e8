import numpy as np

from precise_rag.index.arrays.groups import Groups


def test_groups_begin_where_a_key_changes() -> None:
    groups = Groups.by_change(np.array([0, 0, 1, 1, 1]), np.array([[5, 9], [5, 9], [5, 9], [5, 8], [5, 8]]))
    assert groups.starts.tolist() == [0, 2, 3]
    assert groups.of_row.tolist() == [0, 0, 1, 2, 2]
    assert groups.sizes.tolist() == [2, 1, 2]
    spans = np.array([[0, 2], [3, 5], [6, 8], [9, 11], [12, 14]])
    assert groups.spans(spans).tolist() == [[0, 5], [6, 8], [9, 14]]
    assert groups.sums(np.array([1, 2, 3, 4, 5])).tolist() == [3, 3, 9]


def test_the_best_rows_are_the_best_of_the_best_groups() -> None:
    groups = Groups.by_change(np.array([0, 0, 1, 2, 2]))
    scores = np.array([0.1, 0.6, 0.2, 0.9, 0.8], dtype=np.float32)
    assert groups.best_rows(scores, 2).tolist() == [3, 1]
    assert groups.best_rows(scores, 9).tolist() == [3, 1, 2]
