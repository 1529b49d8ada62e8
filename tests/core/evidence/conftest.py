"""A growth model with weights that can be worked out by hand."""

import numpy as np
import pytest

from precise_rag.checkpoints.saved import save_checkpoint
from precise_rag.evidence import EvidenceModel
from precise_rag.evidence.features import FOUND_FEATURES, STEP_FEATURES


@pytest.fixture
def half_model(tmp_path):
    """A found sentence keeps its probability; each step has the probability one half."""
    found = np.array([float(name == "probability") for name in FOUND_FEATURES], dtype=np.float32)
    config = {"found_features": list(FOUND_FEATURES), "step_features": list(STEP_FEATURES)}
    tensors = {"found": found, "step": np.zeros(len(STEP_FEATURES), dtype=np.float32)}
    save_checkpoint(tmp_path / "evidence", config, tensors)
    return EvidenceModel(tmp_path / "evidence")
