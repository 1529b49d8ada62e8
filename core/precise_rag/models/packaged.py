"""Where the packaged models are."""

from pathlib import Path


def packaged_model(name: str) -> Path:
    """Return the folder of a model that ships with precise-rag.

    name: the folder's name in `precise_rag/models`, for instance "reranker".
    """
    return Path(__file__).parent / name
