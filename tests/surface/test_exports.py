"""The names and signatures that users rely on, and what importing them loads."""

import inspect
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import langchain_precise
import llamaindex_precise
import precise_rag

EXPORTED = [
    (
        langchain_precise,
        "DOCUMENT_PROMPT EvidenceCompressor GradientSelectionCompressor PreciseEmbeddings PreciseRetriever "
        "RedundancyCompressor RelevanceFilterCompressor RerankCompressor SelfFeedbackChain "
        "SelfFeedbackInput SelfFeedbackOutput SemanticSegmentationTextSplitter SentenceContextTextSplitter "
        "read_facts",
    ),
    (
        llamaindex_precise,
        "EvidencePostprocessor GradientSelectionPostprocessor PreciseEmbedding PreciseRerankPostprocessor "
        "PreciseRetriever RedundancyPostprocessor RelevanceFilterPostprocessor SelfFeedbackQueryEngine "
        "SemanticSegmentationNodeParser SentenceContextNodeParser read_facts",
    ),
    (llamaindex_precise.events, "PreciseCallEvent PreciseRoundEvent PreciseStageEvent"),
]


@pytest.mark.parametrize(("module", "names"), EXPORTED, ids=[module.__name__ for module, _ in EXPORTED])
def test_these_names_and_no_others_are_exported(module: ModuleType, names: str) -> None:
    assert set(module.__all__) == set(names.split())


def test_exported_names_of_the_core_are_listed() -> None:
    assert set(precise_rag.__all__) <= set(dir(precise_rag))


def test_type_checkers_read_the_annotations() -> None:
    assert Path(str(find_spec("llamaindex_precise").origin)).with_name("py.typed").exists()


def test_signatures_that_users_of_langchain_rely_on() -> None:
    def parameters(function):
        return list(inspect.signature(function).parameters)

    splitter = langchain_precise.SemanticSegmentationTextSplitter
    assert parameters(splitter)[:4] == ["model", "chunk_size", "chunk_overlap", "length_function"]
    retriever = langchain_precise.PreciseRetriever
    assert parameters(retriever.from_documents)[:4] == ["documents", "embeddings", "k", "search_kwargs"]
    assert parameters(retriever.from_index)[:1] == ["index"]
    for kind in ("GradientSelection", "Redundancy", "RelevanceFilter", "Rerank"):
        compressor = getattr(langchain_precise, f"{kind}Compressor")
        assert parameters(compressor.compress_documents) == ["self", "documents", "query", "callbacks"]
        assert parameters(compressor.as_runnable) == ["self"]


HEAVY = "torch faiss nltk openai cohere llama_index langchain_core sentence_transformers"


@pytest.mark.parametrize(
    ("before", "imports", "heavy"),
    [
        ("sys", "import precise_rag", HEAVY),
        ("precise_rag", "for name in precise_rag.__all__: getattr(precise_rag, name)", HEAVY),
        (
            "langchain_core, langchain_text_splitters",  # 1.0 of the splitters brings torch and nltk itself
            "import langchain_precise",
            "langchain langchain_classic llama_index torch openai cohere nltk faiss",
        ),
        (
            "llama_index.core",
            "import llamaindex_precise",
            "torch faiss openai cohere sentence_transformers langchain_core",
        ),
    ],
)
def test_importing_brings_nothing_heavy(before: str, imports: str, heavy: str) -> None:
    code = (
        f"import sys, {before}\nbefore = set(sys.modules)\n{imports}\n"
        f"print([module for module in {heavy!r}.split() if module in sys.modules.keys() - before])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
