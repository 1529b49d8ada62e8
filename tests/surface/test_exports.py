"""The names and signatures that users rely on."""

import inspect
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import langchain_precise
import llamaindex_precise

EXPORTED = [
    (
        langchain_precise,
        "DOCUMENT_PROMPT EvidenceCompressor GradientSelectionCompressor PreciseEmbeddings PreciseRetriever "
        "RedundancyCompressor RelevanceFilterCompressor RerankCompressor SelfFeedbackChain "
        "SelfFeedbackInput SelfFeedbackOutput SemanticSegmentationTextSplitter SentenceContextTextSplitter "
        "ToolResultPruningMiddleware read_facts",
    ),
    (
        llamaindex_precise,
        "EvidencePostprocessor GradientSelectionPostprocessor PreciseEmbedding PreciseRerankPostprocessor "
        "PreciseRetriever RedundancyPostprocessor RelevanceFilterPostprocessor SelfFeedbackQueryEngine "
        "SemanticSegmentationNodeParser SentenceContextNodeParser prune_tool_results read_facts",
    ),
    (llamaindex_precise.events, "PreciseCallEvent PreciseRoundEvent PreciseStageEvent"),
]


@pytest.mark.parametrize(("module", "names"), EXPORTED, ids=[module.__name__ for module, _ in EXPORTED])
def test_these_names_and_no_others_are_exported(module: ModuleType, names: str) -> None:
    assert set(module.__all__) == set(names.split())


def test_type_checkers_read_the_annotations() -> None:
    assert Path(str(find_spec("llamaindex_precise").origin)).with_name("py.typed").exists()


def test_arguments_of_langchain_stand_where_its_users_expect_them() -> None:
    def first_parameters(function: Callable[..., object]) -> str:
        return " ".join(list(inspect.signature(function).parameters)[:4])

    splitter = langchain_precise.SemanticSegmentationTextSplitter
    assert first_parameters(splitter) == "model chunk_size chunk_overlap length_function"
    retriever = langchain_precise.PreciseRetriever
    assert first_parameters(retriever.from_documents) == "documents embeddings k search_kwargs"
