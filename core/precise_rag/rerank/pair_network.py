"""The cascade's cross-encoder in torch, for GPUs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification

from precise_rag.checkpoints import Tensors
from precise_rag.encoders.local import E5, packaged_encoder
from precise_rag.encoders.sentence_transformer import bfloat16_is_fast
from precise_rag.rerank.pairs import AROUND, Logits, Piece, tokens_of_pairs
from precise_rag.types import FloatArray

_BATCH_TOKENS = 16_384


def torch_logits(weights: Tensors, tokenizer: Any, device: str | None = None) -> Logits:
    """Return the logits of a trained network. device: such as "cpu"; default: CUDA if there is one."""
    config = BertConfig.from_pretrained(packaged_encoder(E5), type_vocab_size=AROUND + 1, num_labels=1)
    network = BertForSequenceClassification(config)
    named = {
        name if name.startswith("classifier") else f"bert.{name}": torch.from_numpy(tensor)
        for name, tensor in weights.items()
    }
    network.load_state_dict(named)
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    network = network.eval().to(place)
    if bfloat16_is_fast(place.type):
        network.bfloat16()

    def logits(query: str, pieces: Sequence[Piece]) -> FloatArray:
        given = np.zeros(len(pieces), dtype=np.float32)
        for rows, batch in tokens_of_pairs(tokenizer, query, pieces).batches(_BATCH_TOKENS):
            ids, types, read = (torch.from_numpy(one).to(place) for one in batch.padded())
            with torch.inference_mode():
                found = network(input_ids=ids, token_type_ids=types, attention_mask=read).logits
            given[rows] = found[:, 0].float().cpu().numpy()
        return given

    return logits
