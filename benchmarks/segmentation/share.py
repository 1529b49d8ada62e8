"""The share of a segmenter's time that is its encoder's network."""

from collections.abc import Callable, Iterable
from itertools import cycle
from typing import Any

import numpy as np

from benchmarks.timing import in_turn
from precise_rag import Segmenter
from precise_rag.encoders.onnx import OnnxEncoder
from precise_rag.types import Document

ROUNDS = 3


def run_share(documents: Iterable[Document], megabytes: float, device: str | None = None) -> dict[str, Any]:
    """Time the whole path of `sage-minilm` and its bare network in turn, on the same batches of tokens.

    documents: repeated until there are so many megabytes of text. device: see `load_encoder`.
    """
    segmenter = Segmenter.from_pretrained("sage-minilm", device=device)
    texts, size = [], 0
    for document in cycle(list(documents)):
        texts.append(document)
        size += len(document.text.encode("utf-8", "replace"))
        if size >= megabytes * 1e6:
            break
    encoder = segmenter.model.encoder
    record = _onnx_batches if isinstance(encoder, OnnxEncoder) else _torch_batches
    ways: dict[str, Callable[[], object]] = {"whole": lambda: sum(map(len, segmenter.segment_many(texts)))}
    n_tokens, ways["bare"] = record(encoder, ways["whole"])
    took = in_turn(ways, ROUNDS)
    (long, long_cpu), (short, short_cpu) = (
        np.median([one[:2] for one in took[name]], axis=0) for name in ("whole", "bare")
    )
    return {
        "encoder": type(encoder).__name__,
        "MB": round(size / 1e6, 3),
        "tokens": n_tokens,
        "whole path s": round(long, 3),
        "bare encoder s": round(short, 3),
        "encoder's share": round(short / long, 3),
        "encoder's share by CPU time": round(short_cpu / long_cpu, 3),
        "tokens/s": round(n_tokens / long),
        "MB/s": round(size / 1e6 / long, 4),
    }


def _onnx_batches(encoder: Any, work: Callable[[], object]) -> tuple[int, Callable[[], object]]:
    network, batches = encoder.network, []
    vectors = network.vectors
    network.vectors = lambda tokens: (batches.append(tokens), vectors(tokens))[1]
    work()
    del network.vectors
    return sum(len(batch.ids) for batch in batches), lambda: [vectors(batch) for batch in batches]


def _torch_batches(encoder: Any, work: Callable[[], object]) -> tuple[int, Callable[[], object]]:
    import torch

    from precise_rag.encoders.sentence_transformer import fast_precision

    module, batches = encoder.module, []
    given = ("input_ids", "attention_mask", "token_type_ids", "modality")
    hook = module.register_forward_pre_hook(
        lambda _, inputs: batches.append({name: v for name, v in inputs[0].items() if name in given})
    )
    work()
    hook.remove()

    def bare() -> None:
        with torch.inference_mode(), fast_precision(module.device.type):
            found = [module(dict(batch))["sentence_embedding"] for batch in batches]
            torch.cat(found).float().cpu()

    return sum(int(batch["attention_mask"].sum()) for batch in batches), bare
