"""The cascade's cross-encoder on ONNX Runtime, for the CPU."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from precise_rag.checkpoints.saved import Tensors
from precise_rag.encoders.bert import BertNetwork
from precise_rag.encoders.int8_layers import Precision
from precise_rag.encoders.local import batches_by_length
from precise_rag.encoders.onnx import SAMPLE
from precise_rag.encoders.onnx_graph import usable_threads
from precise_rag.rerank.pairs import Piece, network_settings, tokens_of_pairs
from precise_rag.types import FloatArray
from precise_rag.vectors import dots, linear, slice_places

_BATCH_TOKENS = 2_048


class OnnxPairScorer:
    """Scores pieces of text against a query with a trained network, on the CPU.

    weights: of the network, with the words. tokenizer: a `tokenizers.Tokenizer`. precision: of the linear
    layers.
    """

    def __init__(self, weights: Tensors, tokenizer: Any, precision: Precision = "int8") -> None:
        self._tokenizer, self._weights, (query, text) = tokenizer, weights, SAMPLE
        self._network = BertNetwork(
            network_settings(),
            weights,
            usable_threads(),
            precision,
            lambda: tokens_of_pairs(tokenizer, query, [Piece(text)]).tokens,
        )

    def logits(self, query: str, pieces: Sequence[Piece]) -> FloatArray:
        """Return (n,) logits, one per piece; of long queries and texts only the beginning is read."""
        logits, weights = np.zeros(len(pieces), dtype=np.float32), self._weights
        tokens, kinds = tokens_of_pairs(self._tokenizer, query, pieces)
        for rows in batches_by_length(tokens.lengths, _BATCH_TOKENS):
            batch = tokens.of(rows)
            of_batch = kinds[slice_places(tokens.offsets[rows], batch.lengths)]
            first = self._network.states(batch, of_batch)[batch.offsets[:-1]]
            pooled = np.tanh(linear(first, weights["pooler.dense.weight"]) + weights["pooler.dense.bias"])
            logits[rows] = dots(pooled, weights["classifier.weight"][0]) + weights["classifier.bias"]
        return logits
