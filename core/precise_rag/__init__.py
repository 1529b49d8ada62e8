"""Precise retrieval for RAG: the few sentences that answer a question, for fewer tokens.

Each public name is loaded when it is first used, so `import precise_rag` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from precise_rag.answer import Answer as Answer
    from precise_rag.candidate_filters import DynamicThreshold as DynamicThreshold
    from precise_rag.candidate_filters import RedundancyFilter as RedundancyFilter
    from precise_rag.candidate_filters import RelevanceFilter as RelevanceFilter
    from precise_rag.documents import read_documents as read_documents
    from precise_rag.encoders import load_encoder as load_encoder
    from precise_rag.errors import BudgetExceeded as BudgetExceeded
    from precise_rag.errors import ContentFilterError as ContentFilterError
    from precise_rag.errors import DatabaseError as DatabaseError
    from precise_rag.errors import EmptyIndexError as EmptyIndexError
    from precise_rag.errors import IndexChangedError as IndexChangedError
    from precise_rag.errors import IndexFormatError as IndexFormatError
    from precise_rag.errors import IndexLockedError as IndexLockedError
    from precise_rag.errors import IndexWriteError as IndexWriteError
    from precise_rag.errors import InputError as InputError
    from precise_rag.errors import LLMError as LLMError
    from precise_rag.errors import MissingExtra as MissingExtra
    from precise_rag.errors import ModelError as ModelError
    from precise_rag.errors import PreciseRagError as PreciseRagError
    from precise_rag.errors import ScoreScaleError as ScoreScaleError
    from precise_rag.evidence import EvidenceExtractor as EvidenceExtractor
    from precise_rag.evidence import EvidenceGrower as EvidenceGrower
    from precise_rag.evidence import ToolResultPruner as ToolResultPruner
    from precise_rag.evidence import prune as prune
    from precise_rag.facts import read_facts as read_facts
    from precise_rag.feedback import FeedbackController as FeedbackController
    from precise_rag.filters import Field as Field
    from precise_rag.filters import Filter as Filter
    from precise_rag.index import DatabaseIndex as DatabaseIndex
    from precise_rag.index import DenseIndex as DenseIndex
    from precise_rag.index import HybridIndex as HybridIndex
    from precise_rag.index import SentenceContextIndex as SentenceContextIndex
    from precise_rag.index import WordSentenceIndex as WordSentenceIndex
    from precise_rag.index import load_index as load_index
    from precise_rag.index import weighted_chunks as weighted_chunks
    from precise_rag.index import weighted_sentences as weighted_sentences
    from precise_rag.llm import Budget as Budget
    from precise_rag.llm import OpenAIChat as OpenAIChat
    from precise_rag.llm import load_llm as load_llm
    from precise_rag.pipeline import PreciseRAG as PreciseRAG
    from precise_rag.rerank import load_reranker as load_reranker
    from precise_rag.rewriting import QueryRewriter as QueryRewriter
    from precise_rag.segmentation import GreedySegmenter as GreedySegmenter
    from precise_rag.segmentation import Segmenter as Segmenter
    from precise_rag.selection import GradientSelector as GradientSelector
    from precise_rag.selection import ProbabilitySelector as ProbabilitySelector
    from precise_rag.sentences import split_sentences as split_sentences
    from precise_rag.trace import Ledger as Ledger
    from precise_rag.trace import PriceTable as PriceTable
    from precise_rag.trace import Trace as Trace
    from precise_rag.types import Candidate as Candidate
    from precise_rag.types import Chunk as Chunk
    from precise_rag.types import Document as Document
    from precise_rag.types import Selection as Selection
    from precise_rag.types import Span as Span

_NAMES = {
    "answer": "Answer",
    "candidate_filters": "DynamicThreshold RedundancyFilter RelevanceFilter",
    "documents": "read_documents",
    "encoders": "load_encoder",
    "errors": "BudgetExceeded ContentFilterError DatabaseError EmptyIndexError IndexChangedError "
    "IndexFormatError IndexLockedError IndexWriteError InputError LLMError MissingExtra ModelError "
    "PreciseRagError ScoreScaleError",
    "evidence": "EvidenceExtractor EvidenceGrower ToolResultPruner prune",
    "facts": "read_facts",
    "feedback": "FeedbackController",
    "filters": "Field Filter",
    "index": "DatabaseIndex DenseIndex HybridIndex SentenceContextIndex WordSentenceIndex load_index "
    "weighted_chunks weighted_sentences",
    "llm": "Budget OpenAIChat load_llm",
    "pipeline": "PreciseRAG",
    "rerank": "load_reranker",
    "rewriting": "QueryRewriter",
    "segmentation": "GreedySegmenter Segmenter",
    "selection": "GradientSelector ProbabilitySelector",
    "sentences": "split_sentences",
    "trace": "Ledger PriceTable Trace",
    "types": "Candidate Chunk Document Selection Span",
}
"""The public names of each module."""
_MODULE = {name: module for module, names in _NAMES.items() for name in names.split()}

__version__ = "0.1.0"
__all__ = sorted(_MODULE)


def __getattr__(name: str) -> object:
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE})
