import numpy as np
import pytest

from precise_rag.segmentation.training.fitting import best_epoch, surely_better


@pytest.mark.parametrize(
    ("after", "is_better"),
    [
        ([0.9, 0.9, 0.9, 0.9, 0.9, 0.9], True),
        ([0.7, 0.9, 0.8, 0.9, 0.7, 0.8], True),
        ([0.5, 1.1, 1.0, 0.9, 1.2, 1.1], False),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 0.4], False),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], False),
    ],
)
def test_a_lower_loss_counts_only_if_chance_does_not_explain_it(after: list[float], is_better: bool) -> None:
    """The interval of the second case is .2 +- .094: scipy.stats.ttest_rel gives the same sides."""
    before = np.ones(6)
    assert surely_better(before, np.array(after)) == is_better
    assert not surely_better(before[:2], np.array(after[:2]))


def test_the_model_that_training_starts_from_is_kept_until_an_epoch_is_surely_better() -> None:
    start = {"epoch": 0, "loss": 1.0, "documents": [1.0, 1.0, 1.0, 1.0]}
    lucky = {"epoch": 1, "loss": 0.85, "documents": [0.4, 1.0, 1.0, 1.0]}
    better = {"epoch": 2, "loss": 0.9, "documents": [0.9, 0.91, 0.9, 0.89]}
    assert best_epoch([start, lucky]) is start
    assert best_epoch([start, lucky, better]) is better
    assert best_epoch([{**lucky, "epoch": 1}, {**better, "epoch": 2}])["epoch"] == 1
