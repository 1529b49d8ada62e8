"""The packaged models: in numpy, and in torch as on a GPU ("cpu:0" is the CPU by torch, "cpu" by numpy)."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from precise_rag import Document, Segmenter, load_encoder
from precise_rag.encoders import devices
from precise_rag.errors import InputError, ModelError
from precise_rag.segmentation.on_device import on_device
from precise_rag.segmentation.segmenter import load_model
from precise_rag.sentences.sentence_tables import tables_of
from support.segmentation import TWO_TOPICS

SENTENCES = [f"{sentence.strip()}." for sentence in TWO_TOPICS.split(".") if sentence.strip()] * 40


def test_the_packaged_model_finds_the_change_of_topic(small: Segmenter) -> None:
    assert int(np.argmin(small.explain(TWO_TOPICS).scores)) == 3


def test_scores_are_the_same_with_a_table_and_without_whichever_encoder_made_it() -> None:
    documents = [Document("d", TWO_TOPICS), Document("e", "One sentence.")]
    ((_, table), _) = tables_of(documents, load_encoder())
    for name in ("sage-minilm", "sage"):
        sage = Segmenter.from_pretrained(name, device="cpu")
        from_table = sage.explain(documents[0], table)
        np.testing.assert_allclose(from_table.scores, sage.explain(documents[0]).scores, atol=0.02)
    assert from_table.n_tokens.tolist() == table.n_tokens.tolist()
    with pytest.raises(InputError, match="got 100"):
        sage.explain(documents[0], replace(table, vectors=table.vectors[:, :100]))


def test_foreign_and_missing_models_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ModelError, match="not of a model of precise-rag"):
        Segmenter.from_pretrained(tmp_path)
    with pytest.raises(ModelError, match="no segmentation model 'huge'; pass small, sage, sage-minilm, or a"):
        Segmenter.from_pretrained("huge")


@pytest.fixture
def by_torch(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The families that were placed on a device, and blocks of a few sentences, so that there are several."""
    pytest.importorskip("torch")
    placed: list[str] = []

    def noted(config: Any, tensors: Any, name: str) -> Any:
        placed.append(config["family"])
        return on_device(config, tensors, name)

    monkeypatch.setattr("precise_rag.segmentation.on_device.on_device", noted)
    monkeypatch.setattr("precise_rag.segmentation.on_device.DEVICE_BATCH", 60)
    return placed


@pytest.mark.parametrize(("name", "families"), [("small", ["small"]), ("sage", ["sage", "small"])])
def test_the_logits_in_torch_are_those_of_numpy_whatever_the_blocks(
    name: str, families: list[str], by_torch: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_model("sage", device="cpu")[0].encoder if name != "small" else None
    here, there = (
        load_model(name, device=device, encoder=encoder)[0].predict(SENTENCES) for device in ("cpu", "cpu:0")
    )
    monkeypatch.setattr("precise_rag.segmentation.on_device.BATCH", 17)
    in_blocks = load_model(name, device="cpu", encoder=encoder)[0].predict(SENTENCES)
    assert np.ptp(here) > 1
    np.testing.assert_allclose(there, here, atol=2e-3)
    np.testing.assert_allclose(in_blocks, here, atol=1e-3)
    assert by_torch == families


def test_the_default_segmenter_cuts_alike_on_a_device_and_after_pickling(by_torch: list[str]) -> None:
    text = "\n\n".join([TWO_TOPICS] * 5)
    expected = Segmenter.from_pretrained("small", device="cpu").segment(text)
    segmenter = Segmenter.from_pretrained("small", device="cpu:0")
    assert segmenter.segment("One sentence.")[0].text == "One sentence."
    assert segmenter.segment(text) == segmenter.segment(text) == expected
    assert by_torch == ["small"]
    saved = pickle.dumps(segmenter)
    assert len(saved) < 2_000
    del segmenter
    assert pickle.loads(saved).segment(text) == expected
    assert by_torch == ["small"] * 2


def test_which_device_a_network_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "has_gpu", lambda: True)
    assert [devices.best_device(name) for name in (None, "cpu", "mps")] == ["cuda", "cpu", "mps"]
    monkeypatch.setattr(devices, "has_gpu", lambda: False)
    assert devices.best_device(None) == "cpu"
    with pytest.raises(InputError, match="device must be a text such as 'cpu' or 'cuda', got int"):
        devices.best_device(0)  # type: ignore[arg-type]
