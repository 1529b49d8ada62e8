"""precise-rag for LlamaIndex: a retriever, a postprocessor, a node parser and engines that answer.

    SemanticSegmentationNodeParser   cuts documents where the meaning changes
    PreciseRetriever                 finds the few sentences that answer a question
    EvidencePostprocessor            cuts the nodes of any retriever down to them
    SelfFeedbackQueryEngine          answers, judges the answer and tries again
    read_facts                       what a result says about itself: its document, place and score

`PreciseEmbedding` is the offline encoder as a LlamaIndex embedding. Components for a single stage, as the
papers have them, are in `llamaindex_precise.papers`; instrumentation events in `llamaindex_precise.events`.
"""

from typing import NoReturn

from llamaindex_precise import _framework as _framework
from llamaindex_precise import events, papers
from llamaindex_precise.embeddings import PreciseEmbedding
from llamaindex_precise.evidence import EvidencePostprocessor
from llamaindex_precise.node_parsers import SemanticSegmentationNodeParser
from llamaindex_precise.retrievers import PreciseRetriever
from llamaindex_precise.self_feedback import SelfFeedbackQueryEngine
from precise_rag._missing_names import missing_name
from precise_rag.facts import read_facts

__all__ = [
    "EvidencePostprocessor",
    "PreciseEmbedding",
    "PreciseRetriever",
    "SelfFeedbackQueryEngine",
    "SemanticSegmentationNodeParser",
    "read_facts",
]


def __getattr__(name: str) -> NoReturn:
    raise missing_name(__name__, name, others=(papers, events))
