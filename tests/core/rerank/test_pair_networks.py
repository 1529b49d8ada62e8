"""The cascade's cross-encoder, in torch and on ONNX Runtime."""

import numpy as np
import pytest

from precise_rag.checkpoints import dequantized, load_checkpoint, packaged_model
from precise_rag.encoders.local import E5, packaged_tokenizer
from precise_rag.encoders.onnx import OnnxEncoder
from precise_rag.rerank.pairs import (
    AROUND,
    QUERY,
    TEXT,
    TEXT_TOKENS,
    Piece,
    onnx_logits,
    tokens_of_pairs,
    word_table,
)
from support.rerankers import LAMP as TEXTS
from support.rerankers import WHOSE_LAMP as QUESTION

PIECES = [
    Piece(TEXTS[0], before="The old keeper left for the sea."),
    Piece(TEXTS[1], above="Harbour: ", before="It is old. " * 30, after="Ships come in by its light. " * 30),
    Piece(TEXTS[2], above="Prices: ", after="Nobody knows why."),
    *map(Piece, ("", TEXTS[3])),
]
"""Some with titles above them and text around them."""
TOLERANCE = 1e-3
"""Largest difference of a logit alone and in a batch."""
INT8_TOLERANCE = 0.6
"""Largest difference of a logit between ONNX Runtime, in int8, and torch, in float32."""


def test_the_network_gives_nearly_the_logits_of_torch_alone_and_in_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = pytest.importorskip("precise_rag.rerank.pair_network")
    monkeypatch.setattr(network, "bfloat16_is_fast", lambda device: False)
    tokenizer = packaged_tokenizer()
    assert tokenizer is OnnxEncoder(E5).tokenizer  # it takes 75 MB
    folder = packaged_model("reranker-cascade")
    weights = dequantized(load_checkpoint(folder)[1] | word_table())
    exact, given = network.torch_logits(weights, tokenizer, "cpu"), onnx_logits(folder, tokenizer)
    logits = given(QUESTION, PIECES)
    assert logits == pytest.approx(exact(QUESTION, PIECES), abs=INT8_TOLERANCE)
    for one, together in ((given, logits), (exact, exact(QUESTION, PIECES))):
        alone = [one(QUESTION, [piece])[0] for piece in PIECES]
        assert alone == pytest.approx(together, abs=TOLERANCE)
    in_batches = given(QUESTION, PIECES * 12).reshape(12, -1)
    np.testing.assert_allclose(in_batches, np.tile(logits, (12, 1)), atol=TOLERANCE)
    assert len(given(QUESTION, [])) == 0


def test_a_piece_is_read_below_its_titles_and_between_the_words_beside_it() -> None:
    tokenizer = packaged_tokenizer()
    piece = Piece("Change the oil.", "Pump M-7: ", "wet " * 40 + "Drain it.", "Close it. " + "dry " * 40)
    ids, offsets, kinds = tokens_of_pairs(tokenizer, QUESTION, [piece, Piece("Stop ٢.")])
    own = {kind: tokenizer.decode(ids[: offsets[1]][kinds[: offsets[1]] == kind]) for kind in range(3)}
    assert (own[QUERY], own[TEXT]) == (QUESTION, "Pump M-7: Change the oil.")
    assert own[AROUND].startswith("wet wet")
    assert "Drain it. Close it. dry" in own[AROUND]
    assert tokenizer.decode(ids[offsets[1] :]) == f"{QUESTION} Stop 2."
    ids, offsets, kinds = tokens_of_pairs(tokenizer, "why " * 99, [Piece(TEXTS[2], "a " * 99, "wet " * 50)])
    assert [int((kinds == kind).sum()) for kind in range(3)] == [51, 40 + TEXT_TOKENS + 1, 24]
