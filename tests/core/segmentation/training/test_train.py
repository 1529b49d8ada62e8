import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from precise_rag import Segmenter
from precise_rag.cli import main
from precise_rag.errors import InputError
from precise_rag.segmentation.networks import SageConfig, SageNetwork, sage_tensors
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.segmenter import load_model
from precise_rag.segmentation.training import train
from precise_rag.segmentation.training.corpus import PAD, TrainingCorpus
from precise_rag.segmentation.training.fitting import TrainingSettings, best_epoch, surely_better
from precise_rag.segmentation.training.labelled_documents import UNKNOWN, label_sections, read_labelled
from precise_rag.segmentation.training.train import (
    frequency_weights,
    principal_components,
    train_sage,
    train_small,
)
from precise_rag.testing import HashEncoder
from support.documents import read_cases
from support.segmentation import TOPICS


def test_frequent_pieces_have_lower_weights() -> None:
    raw = frequency_weights(np.array([0] * 900 + [1] * 100), 3)
    np.testing.assert_allclose(np.log1p(np.exp(raw)), [0.01, 0.01, 1.0], rtol=1e-4)


def test_principal_components_keep_the_widest_directions() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32) * [9, 5, 0.1, 0.1, 0.1]
    reduced = principal_components(rows, 2)
    assert abs(np.corrcoef(reduced[:, 0], rows[:, 0])[0, 1]) > 0.99
    with pytest.raises(InputError, match="at least 7"):
        principal_components(rows, 7)


def test_training_in_half_precision_learns(
    tmp_path: Path, toy_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "half_precision_on_gpu", lambda device: torch.autocast("cpu", torch.bfloat16))
    documents = list(read_labelled(toy_file))
    settings = TrainingSettings(batch_size=128, held_out=0.2, learning_rate=0.01, epochs=3)
    report = train_small(documents, tmp_path, settings, vocabulary_size=200)
    assert report["section_auc"] > 0.9


@pytest.mark.parametrize("loss", ["bce", "mse"])
def test_sage_learns_on_frozen_vectors(tmp_path: Path, toy_file: Path, loss: str) -> None:
    encoder = HashEncoder()
    settings = TrainingSettings(batch_size=128, held_out=0.2, learning_rate=1e-3, epochs=8, loss=loss)
    for name, wrong in (("dropout", 1.0), ("splice", -0.1), ("encoder_learning_rate", -1.0)):
        with pytest.raises(InputError, match=f"{name} must be"):
            replace(settings, **{name: wrong})
    report = train_sage(list(read_labelled(toy_file)), tmp_path, settings, encoder=encoder)
    assert report["section_auc"] > 0.9
    calls = len(encoder.calls)
    segmenter = Segmenter.from_pretrained(tmp_path, encoder=encoder)
    many = list(segmenter.segment_many(["The cat slept. The car starts again.", "Serve the soup hot."]))
    assert len(many) == 2
    assert len(encoder.calls) - calls == 3


def test_training_goes_on_from_the_packaged_model_and_says_which_to_use(
    tmp_path: Path, toy_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The best epoch is chosen on held-out documents, and the packaged model is one of them."""
    out = tmp_path / "better"
    assert main(["train", str(toy_file), "--out", str(out), "--epochs", "3", "--batch-size", "128"]) == 0
    told = capsys.readouterr().out
    losses = re.search(f"use {out}: its loss on the held-out documents is (.*), that of small (.*)", told)
    assert losses is not None
    assert float(losses[1]) < float(losses[2])

    worse = tmp_path / "worse"
    arguments = ["train", str(toy_file), "--out", str(worse), "--batch-size", "128", "--learning-rate", "30"]
    assert main(arguments) == 0
    assert "use small: no epoch was better on the held-out documents" in capsys.readouterr().out
    sentences = ["The lamp is lit at dusk.", "Ilse keeps it.", "The ferry sails at nine."]
    kept, packaged = (load_model(one)[0].predict(sentences) for one in (worse, "small"))
    np.testing.assert_allclose(kept, packaged, atol=1e-2)


def test_numpy_and_torch_agree_on_a_head_that_reads_pairs_alone(tmp_path: Path) -> None:
    encoder = HashEncoder()
    network = SageNetwork(SageConfig(dimension=encoder.dimension, context=False, hidden=16)).eval()
    fields = {"family": "sage", "encoder": "hash", **asdict(network.config)}
    SageModel.save(tmp_path, fields, sage_tensors(network))
    sentences = " ".join(TOPICS * 9).replace("|", ". ").split(". ")
    places = torch.arange(len(sentences)) + PAD
    with torch.no_grad():
        rows = torch.from_numpy(encoder.encode(sentences))
        expected = network(rows, places, len(sentences) + 2 * PAD)
    found = SageModel.load(tmp_path, encoder=encoder).predict(sentences)
    np.testing.assert_allclose(found, expected[places[:-1]].numpy(), atol=0.01)


@pytest.mark.parametrize(("after", "is_better"), read_cases("sentences.json", "losses after training"))
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
