from pathlib import Path

import numpy as np
import pytest

from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint
from precise_rag.errors import InputError
from precise_rag.segmentation.training import fitting
from precise_rag.segmentation.training.fitting import TrainingSettings, best_epoch, surely_better
from precise_rag.segmentation.training.labelled_documents import read_labelled
from precise_rag.segmentation.training.train import train_small


def test_a_resumed_run_ends_with_the_same_weights(tmp_path: Path, toy_file: Path) -> None:
    documents = list(read_labelled(toy_file))
    options = {"batch_size": 128, "held_out": 0.2, "learning_rate": 0.01, "epochs": 3}
    settings = TrainingSettings(**options)
    report = train_small(documents, tmp_path / "whole", settings, vocabulary_size=200, show_progress=False)
    assert report["section_auc"] > 0.9
    finished = iter([fitting.held_out_figures, fitting.held_out_figures])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "held_out_figures", lambda *arguments: next(finished)(*arguments))
        with pytest.raises(StopIteration):
            train_small(documents, tmp_path / "parts", settings, vocabulary_size=200, show_progress=False)
    train_small(documents, tmp_path / "parts", settings, vocabulary_size=200, show_progress=False)
    (whole, parts) = (dequantized(load_checkpoint(tmp_path / name)[1]) for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    for name, tensor in whole.items():
        np.testing.assert_allclose(parts[name], tensor, atol=0.01, err_msg=name)
    changed = TrainingSettings(**{**options, "seed": 5})
    with pytest.raises(InputError, match="settings must be those of the run"):
        train_small(documents, tmp_path / "parts", changed, vocabulary_size=200, show_progress=False)


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
