import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import llamaindex_precise

NAMES = {
    "EvidencePostprocessor",
    "PreciseEmbedding",
    "PreciseRetriever",
    "SelfFeedbackChatEngine",
    "SelfFeedbackQueryEngine",
    "SemanticSegmentationNodeParser",
    "read_facts",
}
PAPERS = {
    "GradientSelectionPostprocessor",
    "GreedySemanticNodeParser",
    "HybridRetriever",
    "PreciseRerankPostprocessor",
    "RedundancyPostprocessor",
    "RelevanceFilterPostprocessor",
    "RewritingRetriever",
    "SentenceContextNodeParser",
    "SentenceContextRetriever",
    "WordSentenceRetriever",
}
EVENTS = {"PreciseCallEvent", "PreciseRoundEvent", "PreciseStageEvent"}


def test_these_names_and_no_others_are_exported():
    assert set(llamaindex_precise.__all__) == NAMES
    assert set(llamaindex_precise.papers.__all__) == PAPERS
    assert set(llamaindex_precise.events.__all__) == EVENTS


def test_type_checkers_read_the_annotations():
    assert Path(find_spec("llamaindex_precise").origin).with_name("py.typed").exists()


def test_importing_brings_nothing_heavy_that_llamaindex_does_not():
    code = (
        "import sys, llama_index.core\n"
        "before = set(sys.modules)\n"
        "import llamaindex_precise\n"
        "heavy = {'torch', 'faiss', 'openai', 'cohere', 'sentence_transformers', 'langchain_core'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
