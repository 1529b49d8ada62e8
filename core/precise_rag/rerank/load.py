"""Rerankers by name, path or object."""

import os
from pathlib import Path
from typing import Any

from precise_rag.errors import InputError
from precise_rag.protocols import Reranker
from precise_rag.rerank.cascade import cascade_reranker
from precise_rag.rerank.cohere import DEFAULT_COHERE, CohereReranker
from precise_rag.rerank.cross_encoder import CrossEncoderReranker
from precise_rag.rerank.framework import FrameworkReranker
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.types import ScoreScale


def load_reranker(
    reranker: Any = "default", device: str | None = None, *, score_scale: ScoreScale | None = None
) -> Reranker:
    """Load a reranker by name or path, or wrap an object.

    All in a process who name a model share it while one of them holds it; the packaged ones stay loaded.

    reranker: one of

    - "default", also without an argument, or "cascade": the packaged reranker, then a small cross-encoder on
      up to 24 of its best, and 12 more where none is likely. No download, no torch.
    - "packaged": the packaged reranker alone. Fast.
    - "cohere" or "cohere:MODEL": a hosted reranker of Cohere.
    - a path, or any other name with an owner ("owner/model"): a sentence-transformers CrossEncoder,
      loaded at its first use.
    - a LlamaIndex postprocessor or a LangChain compressor, which is wrapped.
    - an object with name, score_scale and score(query, candidates), which is returned as it is.

    device: where a network runs, such as "cpu"; default: CUDA if there is one. score_scale: of a
    CrossEncoder, "probability" (default) or "logit"; of a wrapped object, its scores' (default: "rank").
    Raises InputError if `reranker` is none of these.
    """
    if isinstance(reranker, str):
        reranker = os.path.expanduser(reranker)
        vendor, _, model = reranker.partition(":")
        if reranker == "packaged":
            return packaged_reranker()
        if reranker in ("default", "cascade"):
            return cascade_reranker(device)
        if vendor == "cohere":
            return CohereReranker(model or DEFAULT_COHERE)
        if not reranker or ("/" not in reranker and not Path(reranker).is_dir()):
            raise InputError(
                f'unknown reranker {reranker!r}; pass "default", "packaged", "cascade", "cohere:MODEL", '
                "a folder, or a sentence-transformers CrossEncoder with its owner, such as "
                '"cross-encoder/ms-marco-MiniLM-L6-v2"'
            )
    if isinstance(reranker, str | Path):
        scale = score_scale or "probability"
        return CrossEncoderReranker(reranker, device=device, score_scale=scale).once()
    if isinstance(reranker, Reranker):
        return reranker
    if hasattr(reranker, "postprocess_nodes") or hasattr(reranker, "compress_documents"):
        return FrameworkReranker(reranker, score_scale=score_scale or "rank")
    raise InputError(
        f"reranker must be a name, a path, a LlamaIndex postprocessor, a LangChain compressor, or an object "
        f"with name, score_scale and score(query, candidates), got {type(reranker).__name__}"
    )
