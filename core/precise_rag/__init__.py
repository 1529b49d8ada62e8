"""Precise retrieval for RAG: the right few sentences in front of the language model.

The names below load on first use, so that `import precise_rag` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from precise_rag.answer import Answer as Answer
    from precise_rag.encoders import load_encoder as load_encoder
    from precise_rag.feedback import FeedbackController as FeedbackController
    from precise_rag.filtering import RedundancyFilter as RedundancyFilter
    from precise_rag.filtering import RelevanceFilter as RelevanceFilter
    from precise_rag.index import HybridIndex as HybridIndex
    from precise_rag.index import SentenceContextIndex as SentenceContextIndex
    from precise_rag.index import WordSentenceIndex as WordSentenceIndex
    from precise_rag.pipeline import PreciseRAG as PreciseRAG
    from precise_rag.rerank import load_reranker as load_reranker
    from precise_rag.segmentation import Segmenter as Segmenter
    from precise_rag.selection import GradientSelector as GradientSelector
    from precise_rag.sentences import split_sentences as split_sentences
    from precise_rag.types import Candidate as Candidate
    from precise_rag.types import Chunk as Chunk
    from precise_rag.types import Document as Document
    from precise_rag.types import Selection as Selection
    from precise_rag.types import Span as Span

_HOME = {
    "Answer": "answer",
    "Candidate": "types",
    "Chunk": "types",
    "Document": "types",
    "FeedbackController": "feedback",
    "GradientSelector": "selection",
    "HybridIndex": "index",
    "PreciseRAG": "pipeline",
    "RedundancyFilter": "filtering",
    "RelevanceFilter": "filtering",
    "Segmenter": "segmentation",
    "Selection": "types",
    "SentenceContextIndex": "index",
    "Span": "types",
    "WordSentenceIndex": "index",
    "load_encoder": "encoders",
    "load_reranker": "rerank",
    "split_sentences": "sentences",
}

__version__ = "0.1.0"
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
