import inspect
import subprocess
import sys

import langchain_precise

NAMES = {
    "DOCUMENT_PROMPT",
    "EvidenceCompressor",
    "PreciseEmbeddings",
    "PreciseRetriever",
    "SelfFeedbackChain",
    "SelfFeedbackInput",
    "SelfFeedbackOutput",
    "SemanticSegmentationTextSplitter",
    "read_facts",
}
PAPERS = {
    "CompressorInput",
    "GradientSelectionCompressor",
    "GreedySemanticTextSplitter",
    "HybridRetriever",
    "RedundancyCompressor",
    "RelevanceFilterCompressor",
    "RerankCompressor",
    "RewritingRetriever",
    "SentenceContextRetriever",
    "SentenceContextTextSplitter",
    "WordSentenceRetriever",
}


def test_these_names_and_no_others_are_exported():
    assert set(langchain_precise.__all__) == NAMES
    assert set(langchain_precise.papers.__all__) == PAPERS


def test_signatures_that_users_rely_on():
    def parameters(function):
        return list(inspect.signature(function).parameters)

    splitter = langchain_precise.SemanticSegmentationTextSplitter
    assert parameters(splitter)[:4] == ["model", "chunk_size", "chunk_overlap", "length_function"]
    for kind in ("SentenceContextRetriever", "WordSentenceRetriever", "HybridRetriever"):
        retriever = getattr(langchain_precise.papers, kind)
        assert parameters(retriever.from_documents)[:4] == ["documents", "embeddings", "k", "search_kwargs"]
        assert parameters(retriever.from_index)[:1] == ["index"]
    for kind in ("GradientSelection", "Redundancy", "RelevanceFilter", "Rerank"):
        compressor = getattr(langchain_precise.papers, f"{kind}Compressor")
        assert parameters(compressor.compress_documents) == ["self", "documents", "query", "callbacks"]
        assert parameters(compressor.as_runnable) == ["self"]


def test_importing_asks_for_no_more_of_langchain_than_is_required():
    code = (
        "import sys, langchain_core, langchain_text_splitters\n"
        "before = set(sys.modules)  # 1.0 of the splitters brings torch and nltk itself\n"
        "import langchain_precise\n"
        "others = 'langchain langchain_classic llama_index torch openai cohere nltk faiss'\n"
        "print([module for module in others.split() if module in sys.modules.keys() - before])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
