import gzip
import json
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from precise_rag import Segmenter
from precise_rag.cli import main
from precise_rag.errors import InputError, ModelError
from precise_rag.segmentation.blending import blend, blend_by_halves, fit_weights
from precise_rag.segmentation.pretrained import load_model
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.small import SmallModel
from precise_rag.segmentation.training import data, fitting, train
from precise_rag.segmentation.training.corpus import PAD, TrainingCorpus, area_under_curve
from precise_rag.segmentation.training.data import UNKNOWN, label_sections, read_dataset, read_labelled
from precise_rag.segmentation.training.fitting import TrainingSettings
from precise_rag.segmentation.training.networks import (
    SageConfig,
    SageNetwork,
    SmallConfig,
    SmallNetwork,
    sage_tensors,
    small_tensors,
)
from precise_rag.segmentation.training.train import (
    best_device,
    frequency_weights,
    principal_components,
    train_sage,
    train_small,
)
from precise_rag.segmentation.word_pieces import WordPieces, train_word_pieces, words
from precise_rag.testing import HashEncoder

TOPICS = (
    "The cat chased a mouse around the garden|It slept in the sun all day|Its kittens drank milk",
    "The engine needs oil before winter|Mechanics changed the brakes and tyres|The car starts again",
    "Rice is boiled in salted water|Add pepper and garlic to the sauce|Serve the soup hot",
    "The king signed a treaty in spring|His army crossed the river|The war lasted nine years",
)


def document(number: int) -> dict:
    chance = random.Random(number)
    sections = []
    for topic in chance.sample(TOPICS, 3):
        sentences = [f"{sentence}." for sentence in topic.split("|") * 2]
        sections.append({"paragraphs": [" ".join(sentences[:3]), " ".join(sentences[3:])]})
    return {"id": str(number), "domain": "toy", "license": "CC0 1.0", "sections": sections}


@pytest.fixture(scope="module")
def toy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("toy") / "toy.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(document(number)) + "\n" for number in range(60))
    return path


def labels(sections: list[list[str]], unit: str | None = None) -> tuple[list[int], list[int]]:
    found = label_sections("x", "d", sections, unit)
    return found.paragraph.tolist(), found.section.tolist()


def test_labels_follow_paragraphs_and_sections() -> None:
    assert labels([["A one. B two.", "C three. D four."], ["E five. F six."]]) == (
        [0, 1, 0, 1, 0],
        [0, 0, 0, 1, 0],
    )


def test_labels_are_unknown_where_the_source_is_silent() -> None:
    assert labels([["A one. B two. C three.", "D four."]])[1] == [UNKNOWN] * 3
    assert labels([["A one.", "B two."], ["C three."]], "sentence") == ([UNKNOWN, 1], [0, 1])
    spoken = [
        ["He left. It was late.", '"Wait!" she said. He did not.', "Rain fell. Wind blew."],
        ["End. It is."],
    ]
    assert labels(spoken)[0] == [0, UNKNOWN, 0, UNKNOWN, 0, 1, 0]
    assert labels([["Yes.", "No.", "Why?"], ["Next. Item."]]) == ([UNKNOWN] * 4, [0, 0, 1, 0])


def test_read_labelled_reads_every_kind(tmp_path: Path, toy_file: Path) -> None:
    (tmp_path / "a.txt").write_text("One one. Two two.\r\n \r\nThree three.")
    (tmp_path / "b.jsonl").write_text('{"text": "One one.\\n\\nTwo two. Three.", "lang": "de"}\n')
    text, record = read_labelled(tmp_path)
    assert (text.id, text.domain, text.paragraph.tolist()) == ("a.txt", "txt", [0, 1])
    assert (record.id, record.domain, record.paragraph.tolist()) == ("b.jsonl#1", "multilingual", [1, 0])
    toys = list(read_labelled(toy_file))
    assert (len(toys), toys[0].license, len(toys[0].sentences)) == (60, "CC0 1.0", 18)
    (tmp_path / "c.jsonl").write_text('{"title": "no text"}\n')
    with pytest.raises(InputError, match="line 1"):
        list(read_labelled(tmp_path))
    with pytest.raises(InputError, match="no such file"):
        list(read_labelled(tmp_path / "none"))


def test_read_dataset_takes_the_first_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text": f"First {k}. Second.\n\nThird."} for k in range(9)]
    library = SimpleNamespace(load_dataset=lambda *args, **options: iter(rows))
    monkeypatch.setattr(data, "require", lambda *args, **options: library)
    found = list(read_dataset("wikipedia:en", 2))
    assert [document.paragraph.tolist() for document in found] == [[0, 1]] * 2


def test_words_and_pieces() -> None:
    assert words("It's 你好, naïve ตัว!") == ["it", "'", "s", "你", "好", ",", "naïve", *"ตัว", "!"]
    vocabulary = WordPieces(["[UNK]", "play", "##ing", "##s", "p"])
    assert [vocabulary[word] for word in ("playing", "plays", "pz", "zzz")] == [
        (1, 2),
        (1, 3),
        (4, 0),
        (0, 0, 0),
    ]
    ids, offsets, counts = vocabulary.rows(["Playing plays", "", "x" * 1000])
    assert ids[:5].tolist() == [1, 2, 1, 3, 0]
    assert offsets.tolist() == [0, 4, 5, 133]
    assert counts.tolist() == [4, 1, 1000]


def test_vocabulary_training_keeps_frequent_words_whole() -> None:
    vocabulary = train_word_pieces(["the cat and the dog"] * 50 + ["zyzzyva"], 60)
    assert len(vocabulary["the"]) == len(vocabulary["cat"]) == 1 < len(vocabulary["zyzzyva"])


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


def test_area_under_curve_matches_a_library() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    scores, truth = rng.integers(0, 9, 200).astype(np.float32), rng.random(200) < 0.3
    assert area_under_curve(scores, truth) == pytest.approx(metrics.roc_auc_score(truth, scores))
    assert np.isnan(area_under_curve(scores, np.ones(200, dtype=bool)))


def test_frequent_pieces_weigh_less() -> None:
    raw = frequency_weights(np.array([0] * 900 + [1] * 100), 3)
    np.testing.assert_allclose(np.log1p(np.exp(raw)), [0.01, 0.01, 1.0], rtol=1e-4)


def test_principal_components_keep_the_widest_directions() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32) * [9, 5, 0.1, 0.1, 0.1]
    reduced = principal_components(rows, 2)
    assert abs(np.corrcoef(reduced[:, 0], rows[:, 0])[0, 1]) > 0.99
    with pytest.raises(InputError, match="at least 7"):
        principal_components(rows, 7)


def test_numpy_reads_the_small_network_as_torch_does(tmp_path: Path) -> None:
    vocabulary = train_word_pieces(list(TOPICS) * 3, 90)
    network = SmallNetwork(SmallConfig(vocabulary=len(vocabulary.pieces), dimension=12, hidden=16)).eval()
    config = {"family": "small", **network.config.to_dict()}
    SmallModel.save(tmp_path, config, small_tensors(network), vocabulary)
    sentences = " ".join(TOPICS).replace("|", ". ").split(". ")
    ids, offsets, _ = vocabulary.rows(sentences)
    places = torch.arange(len(sentences)) + PAD
    with torch.no_grad():
        expected = network(torch.from_numpy(ids), torch.from_numpy(offsets), places, len(sentences) + 2 * PAD)
    found = SmallModel.load(tmp_path).read(sentences).logits
    np.testing.assert_allclose(found, expected[places[:-1]].numpy(), atol=0.02)


@pytest.mark.parametrize("context", [True, False])
def test_numpy_reads_the_sage_head_as_torch_does(tmp_path: Path, context: bool) -> None:
    encoder = HashEncoder()
    network = SageNetwork(SageConfig(dimension=encoder.dimension, context=context, hidden=16)).eval()
    fields = {"family": "sage", "encoder": "hash", **network.config.to_dict()}
    SageModel.save(tmp_path, fields, sage_tensors(network))
    sentences = " ".join(TOPICS).replace("|", ". ").split(". ")
    places = torch.arange(len(sentences)) + PAD
    with torch.no_grad():
        rows = torch.from_numpy(encoder.encode(sentences))
        expected = network(rows, places, len(sentences) + 2 * PAD)
    found = SageModel.load(tmp_path, encoder=encoder).read(sentences).logits
    np.testing.assert_allclose(found, expected[places[:-1]].numpy(), atol=0.01)


def test_small_learns_topics_and_resumes_to_the_same_weights(tmp_path: Path, toy_file: Path) -> None:
    documents = list(read_labelled(toy_file))
    options = {"batch_size": 128, "held_out": 0.2, "learning_rate": 0.01, "epochs": 3}
    settings = TrainingSettings(**options)
    report = train_small(documents, tmp_path / "whole", settings, vocabulary_size=200, show_progress=False)
    assert report["section_auc"] > 0.9
    segmenter = Segmenter.from_pretrained(tmp_path / "whole")
    finished = iter([fitting.held_out_figures, fitting.held_out_figures])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "held_out_figures", lambda *arguments: next(finished)(*arguments))
        with pytest.raises(StopIteration):
            train_small(documents, tmp_path / "parts", settings, vocabulary_size=200, show_progress=False)
    train_small(documents, tmp_path / "parts", settings, vocabulary_size=200, show_progress=False)
    assert Segmenter.from_pretrained(tmp_path / "parts").weights_sha256 == segmenter.weights_sha256
    changed = TrainingSettings(**{**options, "seed": 5})
    with pytest.raises(InputError, match="other settings"):
        train_small(documents, tmp_path / "parts", changed, vocabulary_size=200, show_progress=False)


def test_weights_of_two_models_follow_who_is_right() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((4000, 2)) < 0.3
    right, noise = np.where(truth, 1.5, -1.5) + rng.normal(size=truth.shape), rng.normal(size=truth.shape)
    targets = truth.astype(np.int8)
    targets[:50] = UNKNOWN
    weights = fit_weights(right, noise, targets)
    # normal rows of unit variance, 3 apart: the log-odds are 3 x + log(0.3 / 0.7)
    np.testing.assert_allclose(weights, [[3, 3], [0, 0], [-0.85, -0.85]], atol=0.35)
    np.testing.assert_allclose(fit_weights(noise, right, targets)[1], [3, 3], atol=0.35)
    unlabelled = np.full_like(targets, UNKNOWN)
    np.testing.assert_allclose(blend(right, noise, fit_weights(right, noise, unlabelled)), noise, atol=1e-6)
    half = np.arange(len(truth)) % 2
    mixed = blend_by_halves(right, noise, targets, half)
    other = fit_weights(right[half == 1], noise[half == 1], targets[half == 1])
    np.testing.assert_allclose(mixed[half == 0], blend(right, noise, other)[half == 0], atol=1e-6)


def test_a_head_may_weigh_in_the_packaged_small_model(tmp_path: Path, toy_file: Path) -> None:
    encoder, documents = HashEncoder(), list(read_labelled(toy_file))
    settings = TrainingSettings(batch_size=128, held_out=0.2, learning_rate=1e-3, epochs=2, splice=0.3)
    options = {"encoder": encoder, "words": "segmentation-small", "show_progress": False}
    report = train_sage(documents, tmp_path, settings, **options)
    assert report["section_auc"] > 0.8
    model, _ = load_model(tmp_path, encoder=encoder)
    sentences = documents[0].sentences
    small, weights = load_model("small")[0].read(sentences).logits, model._tensors["blend"]
    model._words = None
    expected = weights[0] * model.read(sentences).logits + weights[1] * small + weights[2]
    together = Segmenter.from_pretrained(tmp_path, encoder=encoder).model.read(sentences).logits
    np.testing.assert_allclose(together, expected, atol=1e-5)
    config = json.loads((tmp_path / "config.json").read_text())
    config["words"]["weights_sha256"] = "0" * 64
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="train it again"):
        load_model(tmp_path, encoder=encoder)


@pytest.mark.parametrize("family", ["small", "sage"])
def test_half_precision_learns_too(
    tmp_path: Path, toy_file: Path, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    monkeypatch.setattr(train, "half_precision_on_gpu", lambda device: torch.autocast("cpu", torch.bfloat16))
    documents, options = list(read_labelled(toy_file)), {"batch_size": 128, "held_out": 0.2}
    if family == "small":
        settings = TrainingSettings(**options, learning_rate=0.01, epochs=3)
        report = train_small(documents, tmp_path, settings, vocabulary_size=200, show_progress=False)
    else:
        settings = TrainingSettings(**options, learning_rate=3e-3, epochs=8)
        report = train_sage(documents, tmp_path, settings, encoder=HashEncoder(), show_progress=False)
    assert report["section_auc"] > 0.9


def test_the_best_device_is_the_one_asked_for_or_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert str(best_device()) == "cuda"
    assert str(best_device("cpu")) == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert str(best_device()) == "cpu"


@pytest.mark.parametrize("loss", ["bce", "mse"])
def test_sage_learns_on_frozen_vectors(tmp_path: Path, toy_file: Path, loss: str) -> None:
    encoder = HashEncoder()
    settings = TrainingSettings(batch_size=128, held_out=0.2, learning_rate=1e-3, epochs=8, loss=loss)
    report = train_sage(
        list(read_labelled(toy_file)), tmp_path, settings, encoder=encoder, show_progress=False
    )
    assert report["section_auc"] > 0.9
    calls = len(encoder.calls)
    segmenter = Segmenter.from_pretrained(tmp_path, encoder=encoder)
    many = list(segmenter.segment_many(["The cat slept. The car starts again.", "Serve the soup hot."]))
    assert len(many) == 2
    assert len(encoder.calls) - calls == 3


def test_the_command_trains_and_writes_a_card(
    tmp_path: Path, toy_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "train",
        str(toy_file),
        "--out",
        str(tmp_path),
        "--epochs",
        "1",
        "--held-out",
        "0.2",
        "--json",
    ]
    assert main([*arguments, "--vocabulary", "200"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    card = (tmp_path / "README.md").read_text()
    assert "| toy | CC0 1.0 | 60 | 1,080 |" in card
    assert f"{report['section_auc']:.3f}" in card
    assert Segmenter.from_pretrained(tmp_path).weights_sha256 in card
    assert main(["train", "--out", str(tmp_path)]) == 1
