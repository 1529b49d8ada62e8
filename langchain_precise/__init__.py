"""precise-rag for LangChain: a retriever, a compressor, a text splitter and a chain that answers.

    SemanticSegmentationTextSplitter   cuts texts where the meaning changes
    PreciseRetriever                   finds the few sentences that answer a question
    EvidenceCompressor                 cuts the documents of any retriever down to them
    SelfFeedbackChain                  answers, judges the answer and tries again
    DOCUMENT_PROMPT                    writes an excerpt below its headings, for chains that ask how
    read_facts                         what a result says about itself: its document, place and score

`PreciseEmbeddings` is the offline encoder as LangChain embeddings. Components for a single stage, as the
papers have them, are in `langchain_precise.papers`.
"""

from typing import NoReturn

from langchain_precise import _framework as _framework
from langchain_precise import papers
from langchain_precise.embeddings import PreciseEmbeddings
from langchain_precise.evidence import EvidenceCompressor
from langchain_precise.prompts import DOCUMENT_PROMPT
from langchain_precise.retrievers import PreciseRetriever
from langchain_precise.self_feedback import SelfFeedbackChain, SelfFeedbackInput, SelfFeedbackOutput
from langchain_precise.text_splitters import SemanticSegmentationTextSplitter
from precise_rag._missing_names import missing_name
from precise_rag.facts import read_facts

__all__ = [
    "DOCUMENT_PROMPT",
    "EvidenceCompressor",
    "PreciseEmbeddings",
    "PreciseRetriever",
    "SelfFeedbackChain",
    "SelfFeedbackInput",
    "SelfFeedbackOutput",
    "SemanticSegmentationTextSplitter",
    "read_facts",
]


def __getattr__(name: str) -> NoReturn:
    raise missing_name(__name__, name, others=(papers,))
