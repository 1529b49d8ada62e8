"""The cascade's cross-encoder in torch, for GPUs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification

from precise_rag.checkpoints.saved import Tensors
from precise_rag.encoders.local import E5, packaged_encoder
from precise_rag.encoders.sentence_transformer import bfloat16_is_fast
from precise_rag.rerank.pairs import AROUND, Piece, tokens_of_pairs
from precise_rag.types import FloatArray

_BATCH_TOKENS = 16_384


class PairScorer:
    """Scores pieces of text against a query with a trained network; see `OnnxPairScorer`.

    device: such as "cpu"; default: CUDA if there is one.
    """

    def __init__(self, weights: Tensors, tokenizer: Any, device: str | None = None) -> None:
        self._tokenizer = tokenizer
        config = BertConfig.from_pretrained(packaged_encoder(E5), type_vocab_size=AROUND + 1, num_labels=1)
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
        for rows, batch in tokens_of_pairs(self._tokenizer, query, pieces).batches(_BATCH_TOKENS):
            ids, types, read = (torch.from_numpy(one).to(self._device) for one in batch.padded())
            with torch.inference_mode():
                found = self._network(input_ids=ids, token_type_ids=types, attention_mask=read).logits
            logits[rows] = found[:, 0].float().cpu().numpy()
        return logits
