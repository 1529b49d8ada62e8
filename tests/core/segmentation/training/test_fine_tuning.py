from pathlib import Path

import numpy as np
import pytest
import torch

from precise_rag import Segmenter, load_encoder
from precise_rag.cli import main
from precise_rag.encoders.sentence_transformer import SentenceTransformerEncoder
from precise_rag.errors import InputError, ModelError
from precise_rag.segmentation.training.fine_tuning import embed, trainable
from precise_rag.segmentation.training.fitting import TrainingSettings
from precise_rag.segmentation.training.labelled_documents import label_sections
from precise_rag.segmentation.training.train import train_sage
from precise_rag.testing import HashEncoder
from support.bert import saved_encoder

TOPICS = ("cat dog mouse bird", "oil gas coal wood", "king queen duke earl", "salt rice bean corn")
WORDS = " ".join(TOPICS).split()


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of a few thousand weights that knows sixteen words."""
    return saved_encoder(tmp_path_factory.mktemp("encoder"), [".", *WORDS], prompts={"passage": "oil "})


def documents() -> list:
    rng = np.random.default_rng(0)

    def section(topic: int) -> list[str]:
        sentences = (" ".join(rng.choice(TOPICS[topic].split(), 3)).capitalize() for _ in range(4))
        return [" ".join(f"{sentence}." for sentence in sentences)]

    return [label_sections(str(n), "toy", [section(t) for t in rng.permutation(4)[:3]]) for n in range(40)]


def test_fine_tuning_changes_the_encoder_and_saves_it_with_the_head(
    encoder_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="must be a sentence-transformers model"):
        train_sage(documents(), tmp_path, TrainingSettings(), encoder=HashEncoder(), fine_tune=True)
    settings = TrainingSettings(
        epochs=8, batch_size=64, held_out=0.2, learning_rate=1e-2, encoder_learning_rate=1e-2, dropout=0.1
    )
    encoder = load_encoder(encoder_folder, device="cpu")
    report = train_sage(documents(), tmp_path, settings, encoder=encoder, fine_tune=True)
    assert report["section_auc"] > 0.85
    segmenter = Segmenter.from_pretrained(tmp_path, device="cpu")
    before = load_encoder(encoder_folder, device="cpu").encode(["Cat dog."])
    assert not np.allclose(segmenter.model.encoder.encode(["Cat dog."]), before, atol=1e-3)
    start, trained = (
        SentenceTransformerEncoder(folder, device="cpu").module[0].auto_model
        for folder in (encoder_folder, tmp_path / "encoder")
    )
    torch.testing.assert_close(trained.get_input_embeddings().weight, start.get_input_embeddings().weight)
    assert trained.config._attn_implementation == start.config._attn_implementation
    text = "Cat dog mouse. Bird cat dog. Salt rice bean. Corn salt rice."
    assert "".join(chunk.text for chunk in segmenter.segment(text)) == text
    SentenceTransformerEncoder(encoder_folder, device="cpu").module.save_pretrained(str(tmp_path / "encoder"))
    with pytest.raises(ModelError, match="must be the encoder that the head was trained with"):
        Segmenter.from_pretrained(tmp_path, device="cpu").segment(text)


def test_vectors_in_training_are_those_of_the_encoder_in_order(encoder_folder: Path) -> None:
    encoder = SentenceTransformerEncoder(encoder_folder, device="cpu")
    texts = ["Cat dog mouse bird cat.", "Oil.", *(f"{word} gas." for word in WORDS * 3), "Salt rice."]
    with trainable(encoder.module) as module:
        rows = embed(module, texts)
        assert rows.requires_grad
        attention = module[0].auto_model.config._attn_implementation
    np.testing.assert_allclose(rows.detach().numpy(), encoder.encode(texts), atol=0.02)
    assert attention == "eager"


def test_the_command_fine_tunes_in_smaller_batches(
    encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "toy.txt"
    file.write_text("Cat dog. Oil gas.\n\nKing queen.", encoding="utf-8")
    asked = {}

    def train_sage(documents: list, out: Path, settings: TrainingSettings, **options: object) -> dict:
        asked.update(options, batch_size=settings.batch_size)
        return {"epoch": 1, "paragraph_auc": 0.5, "section_auc": 0.5}

    monkeypatch.setattr("precise_rag.segmentation.training.train.train_sage", train_sage)
    common = f"train {file} --out {tmp_path} --family sage --encoder {encoder_folder}".split()
    assert main([*common, "--fine-tune", "--device", "cpu"]) == 0
    assert (asked["fine_tune"], asked["batch_size"], asked["device"]) == (True, 256, "cpu")
    assert main([*common, "--fine-tune", "--batch-size", "32"]) == 0
    assert asked["batch_size"] == 32
