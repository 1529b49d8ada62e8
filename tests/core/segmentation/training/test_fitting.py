from pathlib import Path

import numpy as np
import pytest

from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint
from precise_rag.errors import InputError
from precise_rag.segmentation.training import fitting
from precise_rag.segmentation.training.fitting import TrainingSettings
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
