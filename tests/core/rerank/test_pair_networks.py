"""The cascade's cross-encoder, in torch and on ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint, packaged_model
from precise_rag.encoders.bert import word_table
from precise_rag.encoders.local import E5, packaged_encoder
from precise_rag.encoders.onnx import OnnxEncoder
from precise_rag.encoders.token_ids import read_tokenizer
from precise_rag.rerank.pairs import AROUND, QUERY, TEXT, TEXT_TOKENS, OnnxPairScorer, Piece, tokens_of_pairs

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


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return read_tokenizer(packaged_encoder(E5) / "tokenizer.json")


def in_torch(tensors: dict[str, np.ndarray], tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The scorer in torch, in float32."""
    network = pytest.importorskip("precise_rag.rerank.pair_network")
    monkeypatch.setattr(network, "bfloat16_is_fast", lambda device: False)
    return network.PairScorer(tensors | dequantized(word_table(packaged_encoder(E5))), tokenizer, "cpu")


@pytest.mark.parametrize("kind", ["packaged", "untrained"])
def test_a_network_gives_the_same_logits_as_torch_alone_and_in_batches(
    kind: str, tokenizer: Any, untrained: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = untrained
    assert tokenizer is OnnxEncoder(E5).tokenizer  # it takes 75 MB
    if kind == "packaged":
        tensors = dequantized(load_checkpoint(packaged_model("reranker-cascade"))[1])
    expected = in_torch(tensors, tokenizer, monkeypatch).logits(QUESTION, PIECES)
    weights = tensors | word_table(packaged_encoder(E5))
    scorer, int8 = OnnxPairScorer(weights, tokenizer, "float32"), OnnxPairScorer(weights, tokenizer)
    assert scorer.logits(QUESTION, PIECES) == pytest.approx(expected, abs=TOLERANCE)
    in_int8 = int8.logits(QUESTION, PIECES)
    assert in_int8 == pytest.approx(expected, abs=INT8_TOLERANCE)
    assert in_int8 != pytest.approx(expected, abs=TOLERANCE)
    for one, together in ((scorer, expected), (int8, in_int8)):
        alone = [one.logits(QUESTION, [piece])[0] for piece in PIECES]
        assert alone == pytest.approx(together, abs=TOLERANCE)
    in_batches = scorer.logits(QUESTION, PIECES * 12).reshape(12, -1)
    np.testing.assert_allclose(in_batches, np.tile(expected, (12, 1)), atol=2 * TOLERANCE)
    assert len(scorer.logits(QUESTION, [])) == 0


def test_a_piece_is_read_below_its_titles_and_between_the_words_beside_it(tokenizer: Any) -> None:
    piece = Piece("Change the oil.", "Pump M-7: ", "wet " * 40 + "Drain it.", "Close it. " + "dry " * 40)
    ids, offsets, kinds = tokens_of_pairs(tokenizer, QUESTION, [piece, Piece("Stop.")])
    own = {kind: tokenizer.decode(ids[: offsets[1]][kinds[: offsets[1]] == kind]) for kind in range(3)}
    assert (own[QUERY], own[TEXT]) == (QUESTION, "Pump M-7: Change the oil.")
    assert own[AROUND].startswith("wet wet")
    assert "Drain it. Close it. dry" in own[AROUND]
    assert tokenizer.decode(ids[offsets[1] :]) == f"{QUESTION} Stop."
    ids, offsets, kinds = tokens_of_pairs(tokenizer, "why " * 99, [Piece(TEXTS[2], "a " * 99, "wet " * 50)])
    assert [int((kinds == kind).sum()) for kind in range(3)] == [51, 40 + TEXT_TOKENS + 1, 24]
