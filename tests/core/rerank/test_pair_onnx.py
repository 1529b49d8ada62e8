import numpy as np
import pytest
import torch

from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint, packaged_model
from precise_rag.rerank.pair_network import PairScorer, minilm, minilm_pair_network
from precise_rag.rerank.pair_onnx import OnnxPairScorer
from precise_rag.rerank.pairs import Piece, TransformerConfig

QUESTION = "Who keeps the lamp of the harbour?"
TEXTS = [
    "Ilse Brandt has kept the lamp of the harbour since the spring.",
    "The lamp is lit at dusk.",
    "Bread prices rose in the valley after the long winter. " * 40,
    "",
    "Two ferries cross the river every hour.",
]
PIECES = [
    Piece(TEXTS[0], before="The old keeper left for the sea."),
    Piece(TEXTS[1], above="Harbour: ", before="It is old. " * 30, after="Ships come in by its light. " * 30),
    Piece(TEXTS[2], above="Prices: ", after="Nobody knows why."),
    *map(Piece, TEXTS[3:]),
]
"""Some with titles above them and text around them."""
TOLERANCE = 1e-3
"""Largest difference of a logit between ONNX Runtime and torch, both in float32."""
INT8_TOLERANCE = 0.6
"""The same if ONNX Runtime computes in int8."""


@pytest.fixture(autouse=True)
def float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precise_rag.rerank.pair_network.bfloat16_is_fast", lambda device: False)


def test_the_packaged_network_gives_the_same_logits_as_torch() -> None:
    config, tensors = load_checkpoint(packaged_model("reranker-cascade"))
    sizes = TransformerConfig(n_layers=config["n_layers"], n_apart=config["n_apart"])
    expected = PairScorer(sizes, dequantized(tensors), "cpu").logits(QUESTION, PIECES)
    scorer = OnnxPairScorer(sizes, dequantized(tensors), "float32")
    assert scorer.logits(QUESTION, PIECES) == pytest.approx(expected, abs=TOLERANCE)
    int8 = OnnxPairScorer(sizes, dequantized(tensors))
    in_int8 = int8.logits(QUESTION, PIECES)
    assert in_int8 == pytest.approx(expected, abs=INT8_TOLERANCE)
    assert in_int8 != pytest.approx(expected, abs=TOLERANCE)
    alone = [scorer.logits(QUESTION, [piece])[0] for piece in PIECES]
    assert alone == pytest.approx(expected, abs=TOLERANCE)
    alone = [int8.logits(QUESTION, [piece])[0] for piece in PIECES]
    assert alone == pytest.approx(in_int8, abs=TOLERANCE)


@pytest.mark.parametrize("n_apart", [0, 2, 6])
def test_any_share_of_the_layers_reads_apart(n_apart: int) -> None:
    config = TransformerConfig(n_apart=n_apart)
    network = minilm_pair_network(config, minilm())
    torch.manual_seed(0)
    network.sides.data.normal_()
    network.across.data.normal_()
    frozen = ("words", "places", "norm.", "apart")
    tensors = {k: v.numpy() for k, v in network.state_dict().items() if not k.startswith(frozen)}
    expected = PairScorer(config, tensors, "cpu").logits("long question " * 50, PIECES)
    logits = OnnxPairScorer(config, tensors, "float32").logits("long question " * 50, PIECES)
    assert logits == pytest.approx(expected, abs=TOLERANCE)


def test_texts_longer_than_a_batch_are_read_in_several() -> None:
    _, tensors = load_checkpoint(packaged_model("reranker-cascade"))
    scorer = OnnxPairScorer(TransformerConfig(), dequantized(tensors), "float32")
    logits = scorer.logits(QUESTION, PIECES * 12)
    np.testing.assert_allclose(logits.reshape(12, -1), np.tile(logits[:5], (12, 1)), atol=TOLERANCE)
