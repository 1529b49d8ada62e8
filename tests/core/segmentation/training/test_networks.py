from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from precise_rag.segmentation.networks import (
    SageConfig,
    SageNetwork,
    SmallConfig,
    SmallNetwork,
    sage_tensors,
    small_tensors,
)
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.small import SmallModel
from precise_rag.segmentation.training.corpus import PAD
from precise_rag.segmentation.word_pieces import train_word_pieces
from precise_rag.testing import HashEncoder
from support.segmentation import TOPICS


def test_numpy_and_torch_agree_on_the_small_network(tmp_path: Path) -> None:
    word_pieces = train_word_pieces(list(TOPICS) * 3, 90)
    network = SmallNetwork(SmallConfig(vocabulary=len(word_pieces.pieces), dimension=12, hidden=16)).eval()
    config = {"family": "small", **asdict(network.config)}
    SmallModel.save(tmp_path, config, small_tensors(network), word_pieces)
    sentences = " ".join(TOPICS).replace("|", ". ").split(". ")
    ids, offsets, _ = word_pieces.encode(sentences)
    places = torch.arange(len(sentences)) + PAD
    with torch.no_grad():
        expected = network(torch.from_numpy(ids), torch.from_numpy(offsets), places, len(sentences) + 2 * PAD)
    found = SmallModel.load(tmp_path).predict(sentences).logits
    np.testing.assert_allclose(found, expected[places[:-1]].numpy(), atol=0.02)


@pytest.mark.parametrize(("context", "curve"), [(True, 8), (True, 0), (False, 0)])
def test_numpy_and_torch_agree_on_the_sage_head(
    tmp_path: Path, context: bool, curve: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = HashEncoder()
    config = SageConfig(dimension=encoder.dimension, context=context, curve=curve, hidden=16)
    network = SageNetwork(config).eval()
    fields = {"family": "sage", "encoder": "hash", **asdict(network.config)}
    SageModel.save(tmp_path, fields, sage_tensors(network))
    sentences = " ".join(TOPICS * 9).replace("|", ". ").split(". ")
    places = torch.arange(len(sentences)) + PAD
    with torch.no_grad():
        rows = torch.from_numpy(encoder.encode(sentences))
        expected = network(rows, places, len(sentences) + 2 * PAD)
    model = SageModel.load(tmp_path, encoder=encoder)
    found = model.predict(sentences).logits
    np.testing.assert_allclose(found, expected[places[:-1]].numpy(), atol=0.01)
    monkeypatch.setattr("precise_rag.segmentation.features._BLOCK", 7)
    np.testing.assert_allclose(model.predict(sentences).logits, found, atol=1e-4)
