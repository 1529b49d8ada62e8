"""A reranker from a name, a path or an object."""

from pathlib import Path
from typing import Any

from precise_rag.encoders.packaged import MINILM
from precise_rag.errors import InputError
from precise_rag.protocols import Encoder, Reranker
from precise_rag.rerank.cascade import cascade_reranker
from precise_rag.rerank.cohere import DEFAULT_COHERE, CohereReranker
from precise_rag.rerank.cross_encoder import CrossEncoderReranker
from precise_rag.rerank.framework import FrameworkReranker, is_framework_reranker
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.types import ScoreScale


def load_reranker(
    reranker: Any = "packaged", device: str | None = None, *, score_scale: ScoreScale | None = None
) -> Reranker:
    """The reranker meant by `reranker`.

    "packaged": the one shipped with this package, no download. "cascade": the same, and then the small
    cross-encoder shipped with it on the best 20; it needs the extra "offline" and some tenths of a
    second a query. "cohere" or "cohere:MODEL": Cohere's.
    Any other name, or a path: a sentence-transformers CrossEncoder, loaded at its first use on
    `device`. A LlamaIndex postprocessor or LangChain compressor is wrapped; say what its scores mean
    by `score_scale`, else only its order counts. An object that scores already comes back as it is.
    """
    if isinstance(reranker, Path):
        return CrossEncoderReranker(reranker, device=device)
    if isinstance(reranker, str):
        vendor, _, model = reranker.partition(":")
        if reranker == "packaged":
            return packaged_reranker()
        if reranker == "cascade":
            return cascade_reranker(device)
        if vendor == "cohere":
            return CohereReranker(model or DEFAULT_COHERE)
        return CrossEncoderReranker(reranker, device=device)
    if isinstance(reranker, Reranker):
        return reranker
    if is_framework_reranker(reranker):
        return FrameworkReranker(reranker, score_scale=score_scale or "rank")
    raise InputError(
        f"{type(reranker).__name__} is no reranker; pass a name, a path, a LlamaIndex postprocessor, a "
        "LangChain compressor, or an object with name, score_scale and score(query, candidates)"
    )


def default_reranker(encoder: Encoder | None) -> Reranker:
    """What reranks where nobody says: the cascade beside all-MiniLM-L6-v2, of which it is made, else the
    packaged reranker, which needs nothing."""
    return load_reranker("cascade" if encoder is not None and encoder.name == MINILM else "packaged")
