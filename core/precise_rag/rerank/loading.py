"""A reranker from a name, a path or an object."""

from pathlib import Path

from precise_rag.errors import InputError
from precise_rag.protocols import Reranker
from precise_rag.rerank.cross_encoder import CrossEncoderReranker
from precise_rag.rerank.packaged import packaged_reranker


def load_reranker(reranker: str | Path | Reranker = "packaged", device: str | None = None) -> Reranker:
    """The reranker meant by `reranker`.

    "packaged": the one shipped with this package, no download. Any other name or path: a
    sentence-transformers CrossEncoder, loaded at its first use on `device`. An object that scores
    already comes back as it is.
    """
    if isinstance(reranker, Path):
        return CrossEncoderReranker(reranker, device=device)
    if not isinstance(reranker, str):
        if isinstance(reranker, Reranker):
            return reranker
        raise InputError(
            f"{type(reranker).__name__} is no reranker; pass a name, a path, "
            "or an object with name, score_scale and score(query, candidates)"
        )
    if reranker == "packaged":
        return packaged_reranker()
    return CrossEncoderReranker(reranker, device=device)
