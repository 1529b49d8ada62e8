"""The cascade's cross-encoder, in torch and on ONNX Runtime."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from precise_rag import load_encoder
from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint, packaged_model
from precise_rag.rerank.pair_network import PairNetwork, PairScorer, minilm
from precise_rag.rerank.pair_onnx import OnnxPairScorer
from precise_rag.rerank.pairs import CANDIDATE_TOKENS, Piece, TransformerConfig, tokens_of_pieces

Untrained = Callable[..., dict[str, np.ndarray]]
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
CONFIG = TransformerConfig()
TOLERANCE = 1e-3
"""Largest difference of a logit between ONNX Runtime and torch, both in float32."""
INT8_TOLERANCE = 0.6
"""The same if ONNX Runtime computes in int8."""


@pytest.fixture(autouse=True)
def float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precise_rag.rerank.pair_network.bfloat16_is_fast", lambda device: False)


@pytest.fixture(scope="module")
def packaged() -> dict[str, np.ndarray]:
    return dequantized(load_checkpoint(packaged_model("reranker-cascade"))[1])


def with_random_attention(network: Any) -> None:
    torch.manual_seed(0)
    network.sides.data.normal_()
    network.across.data.normal_()


def test_before_training_and_with_attention_across_shut_the_logit_is_minilms_cosine(
    untrained: Untrained,
) -> None:
    tensors = untrained(lambda network: network.across.data.fill_(-1e4))
    texts = [*TEXTS[:3], TEXTS[4]]
    encoder = load_encoder("all-MiniLM-L6-v2")
    cosine = encoder.encode(texts) @ encoder.encode_queries([QUESTION])[0]
    for scorer in (PairScorer(CONFIG, tensors, "cpu"), OnnxPairScorer(CONFIG, tensors, "float32")):
        logits = scorer.logits(QUESTION, [Piece(text) for text in texts])
        assert logits == pytest.approx(PairNetwork.COSINE * (cosine - 0.5), abs=0.15)


def test_the_packaged_network_gives_the_same_logits_as_torch_alone_and_in_batches(
    packaged: dict[str, np.ndarray],
) -> None:
    expected = PairScorer(CONFIG, packaged, "cpu").logits(QUESTION, PIECES)
    scorer, int8 = OnnxPairScorer(CONFIG, packaged, "float32"), OnnxPairScorer(CONFIG, packaged)
    assert scorer.logits(QUESTION, PIECES) == pytest.approx(expected, abs=TOLERANCE)
    in_int8 = int8.logits(QUESTION, PIECES)
    assert in_int8 == pytest.approx(expected, abs=INT8_TOLERANCE)
    assert in_int8 != pytest.approx(expected, abs=TOLERANCE)
    for one, together in ((scorer, expected), (int8, in_int8)):
        alone = [one.logits(QUESTION, [piece])[0] for piece in PIECES]
        assert alone == pytest.approx(together, abs=TOLERANCE)
    in_batches = scorer.logits(QUESTION, PIECES * 12).reshape(12, -1)
    np.testing.assert_allclose(in_batches, np.tile(expected, (12, 1)), atol=2 * TOLERANCE)


@pytest.mark.parametrize("n_apart", [0, 2, 6])
def test_any_share_of_the_layers_reads_apart(n_apart: int, untrained: Untrained) -> None:
    config = TransformerConfig(n_apart=n_apart)
    tensors = untrained(with_random_attention, n_apart=n_apart)
    question = "long question " * 50
    expected = PairScorer(config, tensors, "cpu").logits(question, PIECES)
    scorer = OnnxPairScorer(config, tensors, "float32")
    assert scorer.logits(question, PIECES) == pytest.approx(expected, abs=TOLERANCE)
    there, back = (scorer.logits(a, [Piece(b)])[0] for a, b in (TEXTS[:2], TEXTS[1::-1]))
    assert abs(there - back) > 0.01  # a query and a candidate are not interchangeable


def test_a_piece_is_read_below_its_titles_and_between_the_words_beside_it() -> None:
    tokenizer = minilm().tokenizer
    piece = Piece("Change the oil.", "Pump M-7: ", "wet " * 40 + "Drain it.", "Close it. " + "dry " * 40)
    (row,), (around,) = tokens_of_pieces(tokenizer, [piece])
    assert tokenizer.decode(row).startswith("pump m - 7 : wet wet")
    own = tokenizer.decode([one for one, is_around in zip(row, around, strict=True) if not is_around])
    assert own == "pump m - 7 : change the oil."
    beside = tokenizer.decode([one for one, is_around in zip(row, around, strict=True) if is_around])
    assert "drain it. close it." in beside
    assert 30 < around.sum() < 50
    long = TEXTS[2] * 3
    (row,), _ = tokens_of_pieces(tokenizer, [Piece(long)])
    (with_text,), (around,) = tokens_of_pieces(tokenizer, [Piece(long, before="wet " * 50)])
    assert len(row) == len(with_text) - around.sum() == CANDIDATE_TOKENS
