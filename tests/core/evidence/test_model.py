import numpy as np
import pytest

from precise_rag.checkpoints.saved import save_checkpoint
from precise_rag.errors import ModelError
from precise_rag.evidence import EvidenceModel
from precise_rag.evidence.features import (
    STEP_FEATURES,
    TEXT_FEATURES,
    question_features,
    stretch_features,
)
from precise_rag.evidence.model import REACH
from precise_rag.evidence.stretches import split_into_sentences
from precise_rag.types import Candidate, Stretch


def stretch(n: int) -> Stretch:
    text = " ".join(f"Sentence number {i} is about boats." for i in range(n))
    return split_into_sentences(Candidate("d", 0, len(text), text, 0.0, "rank"))


def found(n: int, **probabilities: float) -> np.ndarray:
    p = np.full(n, np.nan, dtype=np.float32)
    for row, value in probabilities.items():
        p[int(row[1:])] = value
    return p


def test_a_neighbour_within_reach_has_the_product_of_the_steps_and_a_found_one_gains_by_it(half_model):
    growth = half_model.grow("What boats?", stretch(5), found(5, r2=0.8))
    assert growth.probability == pytest.approx([0.2, 0.4, 0.8, 0.4, 0.2], abs=1e-5)
    assert growth.alone == pytest.approx([0, 0, 0.8, 0, 0], abs=1e-5)
    assert growth.source.tolist() == [2, 2, -1, 2, 2]
    alone = half_model.grow("What boats?", stretch(1), found(1, r0=0.3))
    assert alone.probability == pytest.approx([0.3], abs=1e-5)
    beside = half_model.grow("What boats?", stretch(2), found(2, r0=0.5, r1=0.8))
    assert beside.probability == pytest.approx([1 - 0.5 * (1 - 0.4), 1 - 0.2 * (1 - 0.25)], abs=1e-5)
    n = 2 * REACH + 5
    growth = half_model.grow("What boats?", stretch(n), found(n, r0=0.9))
    assert growth.probability[REACH] > 0
    assert not growth.probability[REACH + 1 :].any()
    assert growth.source[REACH + 1] == -1


def test_text_around_a_step_and_none_beyond_is_read():
    texts = ["He saw us, and we saw him."] * 20 + ["In 1990 it had 20 rooms and 3 doors."] * 20
    text = " ".join(texts)
    around = split_into_sentences(Candidate("d", 0, len(text), text, 0.0, "rank"))
    n = len(around.sentences)
    read = stretch_features(
        question_features("How many?"), around, np.full(n, np.nan), np.full(n - 1, 0.5, dtype=np.float32)
    )
    columns = {name: read.forward[:, STEP_FEATURES.index(name)] for name in TEXT_FEATURES}
    assert not columns["digits"][:12].any()
    assert (np.diff(columns["digits"][11:28]) >= 0).all()
    assert np.ptp(columns["digits"][28:]) == 0
    assert columns["first_person"][0] > 0 == columns["first_person"][-1]


def test_the_packaged_model_grows_with_what_was_found_and_lifts_no_neighbour_above_it():
    n, model, former = 12, EvidenceModel(), np.zeros(12, dtype=np.float32)
    for p in (0.01, 0.3, 0.97):
        growth = model.grow("Why do boats float?", stretch(n), found(n, r4=p, r7=p / 2))
        beside = np.delete(np.arange(n), [4, 7])
        assert (growth.probability[beside] < growth.alone.max()).all()
        assert (growth.probability > former).all()
        former = growth.probability


def test_a_model_for_other_features_is_refused(tmp_path):
    config = {"found_features": ["other"], "step_features": []}
    save_checkpoint(tmp_path, config, {"found": np.zeros(1), "step": np.zeros(0)})
    with pytest.raises(ModelError, match="train it again"):
        EvidenceModel(tmp_path)
