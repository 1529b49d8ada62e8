import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import llamaindex_precise

COMPONENTS = {
    "EvidencePostprocessor",
    "GradientSelectionPostprocessor",
    "GreedySemanticNodeParser",
    "HybridRetriever",
    "PreciseCallEvent",
    "PreciseEmbedding",
    "PreciseRerankPostprocessor",
    "PreciseRetriever",
    "PreciseRoundEvent",
    "PreciseStageEvent",
    "RedundancyPostprocessor",
    "RelevanceFilterPostprocessor",
    "SelfFeedbackChatEngine",
    "SelfFeedbackQueryEngine",
    "SemanticSegmentationNodeParser",
    "SentenceContextNodeParser",
    "SentenceContextRetriever",
    "WordSentenceRetriever",
}


def test_the_public_names():
    assert {name for name, value in vars(llamaindex_precise).items() if isinstance(value, type)} == COMPONENTS
    assert all(getattr(llamaindex_precise, name).__doc__ for name in COMPONENTS)
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
