"""Every component that can be built again from its arguments can be saved, without keys."""

import inspect
import json

import pytest
from langchain_core.load import dumpd, load

import langchain_precise
import llamaindex_precise
from precise_rag.candidate_filters import DynamicThreshold
from precise_rag.rerank import CohereReranker
from precise_rag.testing import ScriptedLLM

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")

SECRET = "sk-0123456789-not-to-be-seen"
THRESHOLD = DynamicThreshold(min_score=0.2, min_keep=1)
LANGCHAIN = {
    "EvidenceCompressor": {"max_tokens": 300, "reranker": "packaged"},
    "GradientSelectionCompressor": {"min_k": 2, "min_score": 0.1},
    "PreciseEmbeddings": {"model": "all-MiniLM-L6-v2", "device": "cpu"},
    "RedundancyCompressor": {"similarity_threshold": 0.8},
    "RerankCompressor": {"top_n": 3, "reranker": "packaged"},
}
LLAMAINDEX = {
    "EvidencePostprocessor": {"max_tokens": 300, "reranker": "packaged"},
    "GradientSelectionPostprocessor": {"min_k": 2, "min_score": 0.1},
    "PreciseEmbedding": {"model_name": "all-MiniLM-L6-v2", "device": "cpu"},
    "PreciseRerankPostprocessor": {"top_n": 3, "reranker": "packaged"},
    "RedundancyPostprocessor": {"similarity_threshold": 0.8},
    "RelevanceFilterPostprocessor": {"threshold": THRESHOLD, "heuristics": ("No mills.",)},
    "SemanticSegmentationNodeParser": {"max_tokens": 90, "threshold": 0.4, "include_metadata": False},
    "SentenceContextNodeParser": {"alpha": 0.7},
}
NOT_SAVED = {
    *("PreciseRetriever", "SelfFeedbackChain", "SelfFeedbackQueryEngine"),  # built around a live index
    "RelevanceFilterCompressor",  # only with a model that LangChain saves
    *("SemanticSegmentationTextSplitter", "SentenceContextTextSplitter"),  # LangChain saves no splitters
    *("SelfFeedbackInput", "SelfFeedbackOutput"),  # types of values
    "ToolResultPruningMiddleware",  # LangChain saves no middleware
}


@pytest.mark.parametrize(
    ("module", "saved"), [(langchain_precise, LANGCHAIN), (llamaindex_precise, LLAMAINDEX)]
)
def test_every_component_is_saved_or_named_here(module, saved):
    classes = {name for name in module.__all__ if inspect.isclass(getattr(module, name))}
    assert saved.keys() <= classes <= saved.keys() | NOT_SAVED


@pytest.mark.parametrize(("name", "settings"), LANGCHAIN.items())
def test_langchain_builds_a_component_again(name, settings):
    component = getattr(langchain_precise, name)(**settings)
    saved = json.loads(json.dumps(dumpd(component)))
    again = load(saved, allowed_objects=[type(component)], valid_namespaces=["langchain_precise"])
    assert type(again) is type(component)
    assert settings.items() <= vars(again).items()
    assert dumpd(again) == dumpd(component)


@pytest.mark.parametrize(("name", "settings"), LLAMAINDEX.items())
def test_llamaindex_builds_a_component_again(name, settings):
    model = {"llm": ScriptedLLM([])} if name == "RelevanceFilterPostprocessor" else {}
    component = getattr(llamaindex_precise, name)(**settings, **model)
    saved = json.loads(json.dumps(component.to_dict()))
    assert "llm" not in saved
    again = component.from_dict(saved, **model)
    assert settings.items() <= vars(again).items()
    assert again.to_dict() == component.to_dict()


def test_no_key_is_saved():
    reranker = CohereReranker("any", api_key=SECRET)
    saved = [
        dumpd(langchain_precise.EvidenceCompressor(reranker=reranker)),
        llamaindex_precise.PreciseRerankPostprocessor(reranker=reranker).to_dict(),
    ]
    assert SECRET not in json.dumps(saved, default=repr)
