"""precise-rag for LlamaIndex: a retriever, postprocessors, node parsers and an engine that answers.

    PreciseRetriever                 finds the few sentences that answer a question
    EvidencePostprocessor            cuts the nodes of any retriever down to them
    SemanticSegmentationNodeParser   cuts documents where the meaning changes
    SelfFeedbackQueryEngine          answers, judges the answer and tries again
    PreciseEmbedding                 the offline encoder as a LlamaIndex embedding
    prune_tool_results               cuts long results of an agent's tools
    read_facts                       what a result says about itself: its document, place and score

For a single stage of the papers: PreciseRerankPostprocessor, GradientSelectionPostprocessor,
RedundancyPostprocessor, RelevanceFilterPostprocessor, SentenceContextNodeParser.
Instrumentation events are in `llamaindex_precise.events`.
"""

from llamaindex_precise import _framework as _framework
from llamaindex_precise.agents import prune_tool_results
from llamaindex_precise.embeddings import PreciseEmbedding
from llamaindex_precise.node_parsers import SemanticSegmentationNodeParser, SentenceContextNodeParser
from llamaindex_precise.postprocessors import (
    EvidencePostprocessor,
    GradientSelectionPostprocessor,
    PreciseRerankPostprocessor,
    RedundancyPostprocessor,
    RelevanceFilterPostprocessor,
)
from llamaindex_precise.retrievers import PreciseRetriever
from llamaindex_precise.self_feedback import SelfFeedbackQueryEngine
from precise_rag.facts import read_facts

__all__ = [
    "EvidencePostprocessor",
    "GradientSelectionPostprocessor",
    "PreciseEmbedding",
    "PreciseRerankPostprocessor",
    "PreciseRetriever",
    "RedundancyPostprocessor",
    "RelevanceFilterPostprocessor",
    "SelfFeedbackQueryEngine",
    "SemanticSegmentationNodeParser",
    "SentenceContextNodeParser",
    "prune_tool_results",
    "read_facts",
]
