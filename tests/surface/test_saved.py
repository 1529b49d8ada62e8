"""Every component that can be built again from its arguments can be saved; of the others it says why not."""

import inspect
import json
from typing import Any

import pytest
from langchain_core.load import dumpd, load
from llama_index.core.schema import BaseComponent

import langchain_precise
import llamaindex_precise
from precise_rag.candidate_filters import DynamicThreshold
from precise_rag.rerank import CohereReranker
from precise_rag.testing import ScriptedLLM

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")

SECRET = "sk-0123456789-not-to-be-seen"
LIVE = "it is built around a live index or pipeline; save that, and build the component over it again"

SPLITTER = "LangChain's text splitters are no Serializable, and load takes nothing else"
LANGCHAIN: dict[str, dict[str, Any]] = {
    "EvidenceCompressor": {"max_tokens": 300, "reranker": "packaged"},
    "PreciseEmbeddings": {"model": "all-MiniLM-L6-v2", "device": "cpu"},
    "GradientSelectionCompressor": {"min_k": 2, "min_score": 0.1},
    "RedundancyCompressor": {"similarity_threshold": 0.8},
    "RerankCompressor": {"top_n": 3, "reranker": "packaged"},
}
NOT_LANGCHAIN = {
    "PreciseRetriever": LIVE,
    "SelfFeedbackChain": LIVE,
    "RelevanceFilterCompressor": "it is saved, but its model only if that is one which LangChain saves",
    "SemanticSegmentationTextSplitter": SPLITTER,
    "SentenceContextTextSplitter": SPLITTER,
    "SelfFeedbackInput": "a type of values",
    "SelfFeedbackOutput": "a type of values",
}
LLAMAINDEX: dict[str, dict[str, Any]] = {
    "EvidencePostprocessor": {"max_tokens": 300, "reranker": "packaged"},
    "PreciseEmbedding": {"model_name": "all-MiniLM-L6-v2", "device": "cpu"},
    "SemanticSegmentationNodeParser": {"max_tokens": 90, "threshold": 0.4, "include_metadata": False},
    "GradientSelectionPostprocessor": {"min_k": 2, "min_score": 0.1},
    "RedundancyPostprocessor": {"similarity_threshold": 0.8},
    "RelevanceFilterPostprocessor": {
        "batch_size": 3,
        "threshold": DynamicThreshold(min_score=0.2, min_keep=1),
        "heuristics": ("No mills.",),
    },
    "PreciseRerankPostprocessor": {"top_n": 3, "reranker": "packaged"},
    "SentenceContextNodeParser": {"alpha": 0.7},
}
NOT_LLAMAINDEX = {
    "PreciseRetriever": LIVE,
    "SelfFeedbackQueryEngine": LIVE,
}


def exported(*modules):
    found = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {name: value for name, value in found.items() if inspect.isclass(value)}


ALL_LANGCHAIN = exported(langchain_precise)
ALL_LLAMAINDEX = exported(llamaindex_precise)


def test_every_component_is_saved_or_says_why_not():
    assert set(ALL_LANGCHAIN) == LANGCHAIN.keys() | NOT_LANGCHAIN.keys()
    assert set(ALL_LLAMAINDEX) == LLAMAINDEX.keys() | NOT_LLAMAINDEX.keys()


@pytest.mark.parametrize("name", LANGCHAIN)
def test_langchain_builds_a_component_again(name):
    cls, settings = ALL_LANGCHAIN[name], LANGCHAIN[name]
    dumped = json.loads(json.dumps(dumpd(cls(**settings))))
    assert dumped["type"] == "constructor"
    again = load(dumped, allowed_objects=[cls], valid_namespaces=["langchain_precise"])
    assert type(again) is cls
    assert {key: getattr(again, key) for key in settings} == settings
    assert dumpd(again) == dumpd(cls(**settings))


@pytest.mark.parametrize("name", LLAMAINDEX)
def test_llamaindex_builds_a_component_again(name):
    cls, settings = ALL_LLAMAINDEX[name], LLAMAINDEX[name]
    given = {"llm": ScriptedLLM([])} if name == "RelevanceFilterPostprocessor" else {}
    data = json.loads(json.dumps(cls(**settings, **given).to_dict()))
    assert (data["class_name"], "llm" in data) == (name, False)
    again = cls.from_dict(data, **given)
    assert {key: getattr(again, key) for key in settings} == settings
    assert again.to_dict() == cls(**settings, **given).to_dict()


@pytest.mark.parametrize("name", [name for name, why in NOT_LLAMAINDEX.items() if why == LIVE])
def test_what_llamaindex_cannot_save_has_no_to_dict(name):
    assert not issubclass(ALL_LLAMAINDEX[name], BaseComponent)


@pytest.mark.parametrize("name", [name for name, why in NOT_LANGCHAIN.items() if why == LIVE])
def test_what_langchain_cannot_save_says_so(name):
    assert not ALL_LANGCHAIN[name].is_lc_serializable()


def test_no_key_is_saved():
    reranker = CohereReranker("any", api_key=SECRET)
    saved = [
        dumpd(langchain_precise.EvidenceCompressor(reranker=reranker)),
        dumpd(langchain_precise.RerankCompressor(reranker=reranker)),
        llamaindex_precise.EvidencePostprocessor(reranker=reranker).to_dict(),
        llamaindex_precise.PreciseRerankPostprocessor(reranker=reranker).to_dict(),
    ]
    assert SECRET not in json.dumps(saved, default=repr)
