from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.small import SmallModel
from precise_rag.segmentation.training.corpus import PAD
from precise_rag.segmentation.training.networks import (
    SageConfig,
    SageNetwork,
    SmallConfig,
    SmallNetwork,
    sage_tensors,
    small_tensors,
)
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


@pytest.mark.parametrize("context", [True, False])
def test_numpy_and_torch_agree_on_the_sage_head(tmp_path: Path, context: bool) -> None:
    encoder = HashEncoder()
    network = SageNetwork(SageConfig(dimension=encoder.dimension, context=context, hidden=16)).eval()
    fields = {"family": "sage", "encoder": "hash", **asdict(network.config)}
    SageModel.save(tmp_path, fields, sage_tensors(network))
    sentences = " ".join(TOPICS).replace("|", ". ").split(". ")
    places = torch.arange(len(sentences)) + PAD
    with torch.no_grad():
        rows = torch.from_numpy(encoder.encode(sentences))
        expected = network(rows, places, len(sentences) + 2 * PAD)
    found = SageModel.load(tmp_path, encoder=encoder).predict(sentences).logits
    np.testing.assert_allclose(found, expected[places[:-1]].numpy(), atol=0.01)
