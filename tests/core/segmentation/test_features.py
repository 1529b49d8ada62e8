import numpy as np
import pytest

from precise_rag import Segmenter
from precise_rag.segmentation.features import closeness, cohesion, pair_features, shifted
from precise_rag.sentences import split_sentences
from precise_rag.vectors import unit_rows
from support.segmentation import TWO_TOPICS


def test_pair_features_worked_out_by_hand() -> None:
    left, right = np.array([[1.0, 2.0]], dtype=np.float32), np.array([[3.0, -1.0]], dtype=np.float32)
    assert pair_features(left, right, ("x1", "x2", "x1-x2", "x1*x2")).tolist() == [
        [1, 2, 3, -1, -2, 3, 3, -2]
    ]
    assert pair_features(left, right, ("x1*x2",)).tolist() == [[3, -2]]


def test_cohesion_compares_sums_of_windows() -> None:
    rows = unit_rows(np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32))
    found = cohesion(rows, (1, 2, 4))
    for column, window in enumerate((1, 2, 4)):
        for gap in range(8):
            before = rows[max(gap + 1 - window, 0) : gap + 1].sum(0)
            after = rows[gap + 1 : gap + 1 + window].sum(0)
            cosine = before @ after / np.linalg.norm(before) / np.linalg.norm(after)
            assert found[gap, column] == pytest.approx(cosine, abs=1e-5)


def test_closeness_is_the_length_of_the_mean_of_a_window() -> None:
    rows = unit_rows(np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32))
    found = closeness(rows, (1, 2, 4))
    assert found.shape == (9, 4)
    for column, window in ((0, 2), (2, 4)):
        for gap in range(8):
            before = rows[max(gap + 1 - window, 0) : gap + 1].mean(0)
            after = rows[gap + 1 : gap + 1 + window].mean(0)
            assert found[gap, column] == pytest.approx(np.linalg.norm(before), abs=1e-5)
            assert found[gap, column + 1] == pytest.approx(np.linalg.norm(after), abs=1e-5)


def test_shifted_moves_zeros_in() -> None:
    rows = np.array([[1.0], [2.0], [3.0]], dtype=np.float32)
    assert [shifted(rows, k).ravel().tolist() for k in (1, -2, 0)] == [[0, 1, 2], [3, 0, 0], [1, 2, 3]]


def test_logits_of_a_document_do_not_depend_on_its_blocks(
    small: Segmenter, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = [TWO_TOPICS[a:b] for a, b in split_sentences(TWO_TOPICS * 12)]
    whole = small.model.predict(sentences)
    monkeypatch.setattr("precise_rag.segmentation.features._BLOCK", 17)
    parts = small.model.predict(sentences)
    np.testing.assert_allclose(parts.logits, whole.logits, atol=1e-4)
    assert parts.n_tokens.tolist() == whole.n_tokens.tolist()
