import numpy as np
import pytest

from precise_rag.segmentation.training.corpus import PAD, TrainingCorpus, area_under_curve
from precise_rag.segmentation.training.labelled_documents import UNKNOWN, label_sections


def test_batches_hold_each_training_sentence_once() -> None:
    documents = [label_sections(str(k), "d", [["One. Two. Three."] * (k + 1)]) for k in range(12)]
    corpus = TrainingCorpus.of(documents, held_out=0.3, seed=1)
    seen = []
    for batch in corpus.batches(20, 7, np.random.default_rng(0)):
        seen.extend(batch.sentences.tolist())
        steps = np.diff(batch.places)
        assert set(steps[np.diff(batch.sentences) != 1].tolist()) <= {PAD + 1}
        assert batch.places[0] >= PAD
        assert batch.places[-1] + PAD <= batch.n_places
    training = np.repeat(~corpus.held_out, np.diff(corpus.starts))
    assert sorted(seen) == np.flatnonzero(training).tolist()
    held = np.concatenate([batch.sentences for batch in corpus.held_out_batches(20)])
    assert held.tolist() == np.flatnonzero(~training).tolist()


def test_spliced_windows_end_a_section_where_pieces_of_documents_meet() -> None:
    documents = [label_sections(str(k), "d", [["One. Two. Three. Four. Five."] * 4]) for k in range(30)]
    corpus = TrainingCorpus.of(documents, held_out=0.2, seed=1)
    seen, joints = [], 0
    for batch in corpus.batches(64, 40, np.random.default_rng(0), splice=0.5):
        seen.extend(batch.sentences.tolist())
        side_by_side = np.diff(batch.places) == 1
        apart = np.diff(batch.sentences) != 1
        assert (batch.targets[:-1][side_by_side & apart] == 1).all()
        assert (batch.targets[:-1][~side_by_side] == UNKNOWN).all()
        plain = side_by_side & ~apart
        rows = batch.sentences[:-1][plain]
        differs = (batch.targets[:-1][plain] != corpus.targets[rows]).any(axis=1)
        assert differs.mean() < 0.01  # two pieces of a document may meet again by chance
        joints += int((side_by_side & apart).sum())
    assert joints > 20
    training = np.repeat(~corpus.held_out, np.diff(corpus.starts))
    assert sorted(seen) == np.flatnonzero(training).tolist()


def test_area_under_curve_is_the_share_of_pairs_in_order() -> None:
    rng = np.random.default_rng(3)
    scores, truth = rng.integers(0, 9, 200).astype(np.float32), rng.random(200) < 0.3
    pairs = np.sign(scores[truth][:, None] - scores[~truth])
    assert area_under_curve(scores, truth) == pytest.approx((pairs.mean() + 1) / 2)
    assert np.isnan(area_under_curve(scores, np.ones(200, dtype=bool)))
