"""The networks in torch, as on a GPU: "cpu:0" is the CPU by torch, "cpu" the CPU by numpy."""

import pickle
from typing import Any

import numpy as np
import pytest

from precise_rag import Segmenter
from precise_rag.errors import InputError
from precise_rag.segmentation import on_device
from precise_rag.segmentation.on_device import OnDevice, network_device
from precise_rag.segmentation.pretrained import load_model
from support.segmentation import TWO_TOPICS

SENTENCES = [f"{sentence.strip()}." for sentence in TWO_TOPICS.split(".") if sentence.strip()] * 40


@pytest.fixture
def by_torch(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The families that were placed on a device, and blocks of a few sentences, so that there are several."""
    placed: list[str] = []

    class Noted(OnDevice):
        def __init__(self, config: Any, tensors: Any, device: str) -> None:
            placed.append(config["family"])
            super().__init__(config, tensors, device)

    for module in ("small", "sage"):
        monkeypatch.setattr(f"precise_rag.segmentation.{module}.OnDevice", Noted)
        monkeypatch.setattr(f"precise_rag.segmentation.{module}.BLOCK", 60)
    return placed


@pytest.mark.parametrize(("name", "families"), [("small", ["small"]), ("sage-minilm", ["sage", "small"])])
def test_the_logits_are_those_of_numpy(name: str, families: list[str], by_torch: list[str]) -> None:
    encoder = load_model("sage-minilm", device="cpu")[0].encoder if name != "small" else None
    here, there = (
        load_model(name, device=device, encoder=encoder)[0].predict(SENTENCES) for device in ("cpu", "cpu:0")
    )
    np.testing.assert_allclose(there.logits, here.logits, atol=2e-3)
    assert np.ptp(here.logits) > 1
    np.testing.assert_array_equal(there.n_tokens, here.n_tokens)
    assert by_torch == families


def test_the_default_segmenter_cuts_alike_on_a_device(by_torch: list[str]) -> None:
    text = "\n\n".join([TWO_TOPICS] * 5)
    segmenter = Segmenter.from_pretrained("small", device="cpu:0")
    assert segmenter.segment(text) == Segmenter.from_pretrained("small", device="cpu").segment(text)
    assert segmenter.segment("One sentence.")[0].text == "One sentence."
    assert segmenter.segment(text) == segmenter.segment(text)
    assert by_torch == ["small"]
    copied = pickle.loads(pickle.dumps(segmenter))
    assert copied.segment(text) == segmenter.segment(text)
    assert by_torch == ["small"] * 2


def test_which_device_a_network_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_device, "has_gpu", lambda: True)
    assert [network_device(name) for name in (None, "cpu", "cuda:1")] == ["cuda", None, "cuda:1"]
    monkeypatch.setattr(on_device, "has_gpu", lambda: False)
    assert network_device(None) is None
    with pytest.raises(InputError, match="device must be a text such as 'cpu' or 'cuda', got int"):
        network_device(0)  # type: ignore[arg-type]
