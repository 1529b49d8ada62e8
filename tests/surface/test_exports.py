"""The names, signatures and saved forms that users rely on; nothing is saved with a key."""

import inspect
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from langchain_core.load import dumpd, load

import langchain_precise
import llamaindex_precise
from precise_rag.candidate_filters import DynamicThreshold
from precise_rag.rerank import CohereReranker
from precise_rag.testing import ScriptedLLM

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")


def test_type_checkers_read_the_annotations() -> None:
    assert Path(str(find_spec("llamaindex_precise").origin)).with_name("py.typed").exists()


def test_arguments_of_langchain_stand_where_its_users_expect_them() -> None:
    def first_parameters(function: Callable[..., object]) -> str:
        return " ".join(list(inspect.signature(function).parameters)[:4])

    splitter = langchain_precise.SemanticSegmentationTextSplitter
    assert first_parameters(splitter) == "model chunk_size chunk_overlap length_function"
    retriever = langchain_precise.PreciseRetriever
    assert first_parameters(retriever.from_documents) == "documents embeddings k search_kwargs"


# Every component that can be built again from its arguments can be saved, without keys.

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
    langchain_precise: {
        *("PreciseRetriever", "SelfFeedbackChain"),  # built around a live index
        "RelevanceFilterCompressor",  # only with a model that LangChain saves
        *("SemanticSegmentationTextSplitter", "SentenceContextTextSplitter"),  # LangChain saves no splitters
        *("SelfFeedbackInput", "SelfFeedbackOutput"),  # types of values
        "ToolResultPruningMiddleware",  # LangChain saves no middleware
        *("DOCUMENT_PROMPT", "read_facts"),
    },
    llamaindex_precise: {"PreciseRetriever", "SelfFeedbackQueryEngine", "prune_tool_results", "read_facts"},
    llamaindex_precise.events: {"PreciseCallEvent", "PreciseRoundEvent", "PreciseStageEvent"},
}


@pytest.mark.parametrize("module", NOT_SAVED, ids=lambda module: module.__name__)
def test_these_names_and_no_others_are_exported_and_saved_or_not(module: ModuleType) -> None:
    saved = {langchain_precise: LANGCHAIN, llamaindex_precise: LLAMAINDEX}.get(module, {})
    assert set(module.__all__) == saved.keys() | NOT_SAVED[module]


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
