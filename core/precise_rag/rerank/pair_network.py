"""The cascade's cross-encoder in torch, for GPUs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification

from precise_rag.checkpoints.saved import Tensors
from precise_rag.encoders.local import batches_by_length
from precise_rag.encoders.sentence_transformer import bfloat16_is_fast
from precise_rag.rerank.pairs import AROUND, Piece, network_settings, tokens_of_pairs
from precise_rag.types import FloatArray
from precise_rag.vectors import slice_places

_BATCH_TOKENS = 16_384


class PairScorer:
    """Scores pieces of text against a query with a trained network; see `OnnxPairScorer`.

    device: such as "cpu"; default: CUDA if there is one.
    """

    def __init__(self, weights: Tensors, tokenizer: Any, device: str | None = None) -> None:
        self._tokenizer, settings = tokenizer, network_settings()
        config = BertConfig(
            vocab_size=settings.vocabulary,
            hidden_size=settings.width,
            num_hidden_layers=settings.layers,
            num_attention_heads=settings.heads,
            intermediate_size=settings.inner,
            max_position_embeddings=settings.positions,
            type_vocab_size=AROUND + 1,
            layer_norm_eps=settings.epsilon,
            num_labels=1,
        )
        network = BertForSequenceClassification(config)
        network.load_state_dict(
            {
                name if name.startswith("classifier") else f"bert.{name}": torch.from_numpy(tensor)
                for name, tensor in weights.items()
            }
        )
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._network = network.eval().to(self._device)
        if bfloat16_is_fast(self._device.type):
            self._network.bfloat16()

    def logits(self, query: str, pieces: Sequence[Piece]) -> FloatArray:
        """Return (n,) logits, one per piece; of long queries and texts only the beginning is read."""
        logits = np.zeros(len(pieces), dtype=np.float32)
        tokens, kinds = tokens_of_pairs(self._tokenizer, query, pieces)
        for rows in batches_by_length(tokens.lengths, _BATCH_TOKENS):
            lengths = tokens.lengths[rows]
            mask = np.arange(int(lengths.max())) < lengths[:, None]
            places, given = slice_places(tokens.offsets[rows], lengths), np.zeros((2, *mask.shape), np.int64)
            given[:, mask] = tokens.ids[places], kinds[places]
            ids, types, read = (torch.from_numpy(one).to(self._device) for one in (*given, mask))
            with torch.inference_mode():
                found = self._network(input_ids=ids, token_type_ids=types, attention_mask=read).logits
            logits[rows] = found[:, 0].float().cpu().numpy()
        return logits
