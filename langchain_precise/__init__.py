"""precise-rag for LangChain: a retriever, compressors, text splitters and a chain that answers.

    PreciseRetriever                   finds the few sentences that answer a question
    EvidenceCompressor                 cuts the documents of any retriever down to them
    SemanticSegmentationTextSplitter   cuts texts where the meaning changes
    SelfFeedbackChain                  answers, judges the answer and tries again
    PreciseEmbeddings                  the offline encoder as LangChain embeddings
    ToolResultPruningMiddleware        cuts long results of an agent's tools; needs the package `langchain`
    DOCUMENT_PROMPT                    writes an excerpt below its headings, for chains that ask how
    read_facts                         what a result says about itself: its document, place and score

For a single stage of the papers: RerankCompressor, GradientSelectionCompressor, RedundancyCompressor,
RelevanceFilterCompressor, SentenceContextTextSplitter.
"""

from typing import TYPE_CHECKING, Any

from langchain_precise import _framework as _framework
from langchain_precise.compressors import (
    EvidenceCompressor,
    GradientSelectionCompressor,
    RedundancyCompressor,
    RelevanceFilterCompressor,
    RerankCompressor,
)
from langchain_precise.convert import DOCUMENT_PROMPT
from langchain_precise.embeddings import PreciseEmbeddings
from langchain_precise.retrievers import PreciseRetriever
from langchain_precise.self_feedback import SelfFeedbackChain, SelfFeedbackInput, SelfFeedbackOutput
from langchain_precise.text_splitters import SemanticSegmentationTextSplitter, SentenceContextTextSplitter
from precise_rag._extras import is_installed
from precise_rag.facts import read_facts

if TYPE_CHECKING:
    from langchain_precise.agents import ToolResultPruningMiddleware as ToolResultPruningMiddleware

__all__ = [
    "DOCUMENT_PROMPT",
    "EvidenceCompressor",
    "GradientSelectionCompressor",
    "PreciseEmbeddings",
    "PreciseRetriever",
    "RedundancyCompressor",
    "RelevanceFilterCompressor",
    "RerankCompressor",
    "SelfFeedbackChain",
    "SelfFeedbackInput",
    "SelfFeedbackOutput",
    "SemanticSegmentationTextSplitter",
    "SentenceContextTextSplitter",
    "read_facts",
]

if is_installed("langchain"):
    __all__ += ["ToolResultPruningMiddleware"]


def __getattr__(name: str) -> Any:
    if name != "ToolResultPruningMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from langchain_precise.agents import ToolResultPruningMiddleware

    return ToolResultPruningMiddleware
