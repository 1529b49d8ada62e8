from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from precise_rag.segmentation.networks import SageConfig, SageNetwork, sage_tensors
from precise_rag.segmentation.sage import SageModel
from precise_rag.segmentation.training.corpus import PAD
from precise_rag.testing import HashEncoder
from support.segmentation import TOPICS


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
    found = SageModel.load(tmp_path, encoder=encoder).predict(sentences).logits
    np.testing.assert_allclose(found, expected[places[:-1]].numpy(), atol=0.01)
