"""Arguments have each framework's words; any other word raises an error that names the right one."""

from typing import Any

import langchain_core.documents
import llama_index.core
import pytest

from langchain_precise import EvidenceCompressor, PreciseEmbeddings, SelfFeedbackChain
from langchain_precise import PreciseRetriever as LangChainRetriever
from langchain_precise.papers import GreedySemanticTextSplitter, RedundancyCompressor
from langchain_precise.papers import HybridRetriever as LangChainHybrid
from llamaindex_precise import (
    EvidencePostprocessor,
    PreciseEmbedding,
    SelfFeedbackQueryEngine,
    SemanticSegmentationNodeParser,
)
from llamaindex_precise import PreciseRetriever as LlamaIndexRetriever
from llamaindex_precise.papers import HybridRetriever as LlamaIndexHybrid
from precise_rag import Document, HybridIndex, InputError, PreciseRAG
from precise_rag.testing import HashEncoder, ScriptedLLM

TEXTS = {"1911": "Ada built the clock. It runs on a weight.", "1850": "The clock of Velm is old."}
NODES = [llama_index.core.Document(text=t, doc_id=n, metadata={"year": n}) for n, t in TEXTS.items()]
DOCUMENTS = [langchain_core.documents.Document(t, id=n, metadata={"year": n}) for n, t in TEXTS.items()]
INDEX = HybridIndex.build([Document(n, t, {"year": n}) for n, t in TEXTS.items()], HashEncoder())
ENCODER, LLM = HashEncoder(), ScriptedLLM([])
QUESTION = "Who built the clock?"
OLD = {"filter": {"year": "1850"}}


@pytest.mark.parametrize(
    "made",
    [
        lambda: LangChainHybrid.from_documents(DOCUMENTS, embeddings=ENCODER),
        lambda: LangChainRetriever.from_documents(DOCUMENTS, embeddings=ENCODER, llm=LLM),
        lambda: SelfFeedbackChain.from_documents(DOCUMENTS, llm=LLM, embeddings=ENCODER),
        lambda: GreedySemanticTextSplitter(embeddings=ENCODER),
        lambda: RedundancyCompressor(embeddings=ENCODER),
        lambda: LlamaIndexHybrid.from_documents(NODES, embed_model=ENCODER),
        lambda: LlamaIndexRetriever.from_documents(NODES, embed_model=ENCODER, llm=LLM),
        lambda: SelfFeedbackQueryEngine.from_documents(NODES, llm=LLM, embed_model=ENCODER),
    ],
)
def test_the_words_of_the_framework_are_taken(made):
    assert made()


@pytest.mark.parametrize("kind", [LangChainHybrid, LangChainRetriever])
def test_search_kwargs_hold_what_they_hold_for_a_vector_store(kind):
    retriever = kind.from_index(INDEX, search_kwargs={"k": 1, **OLD})
    assert [document.metadata["year"] for document in retriever.invoke(QUESTION)] == ["1850"]
    assert [document.metadata["year"] for document in kind.from_index(INDEX, k=1).invoke(QUESTION)] == [
        "1911"
    ]


def test_a_filter_of_one_call_comes_before_that_of_search_kwargs():
    retriever = LangChainRetriever.from_index(INDEX, search_kwargs=OLD)
    found = retriever.invoke(QUESTION, filter={"year": "1911"})
    assert {document.metadata["year"] for document in found} == {"1911"}


WRONG_WORDS: dict[str, dict[str, Any]] = {
    word: {word: None} for word in ("encoder", "threshold", "engine", "floor", "embeddings", "nonsense")
}
"""Arguments under words that are another framework's, or nobody's."""

WRONG = [
    (lambda: LangChainHybrid.from_documents(DOCUMENTS, encoder=ENCODER), "'encoder'; write embeddings="),
    (
        lambda: LangChainHybrid.from_documents(DOCUMENTS, embed_model=ENCODER),
        "'embed_model'; write embeddings=",
    ),
    (lambda: LangChainRetriever.from_documents(DOCUMENTS, ENCODER, similarity_top_k=3), "write k="),
    (lambda: LangChainHybrid.from_index(INDEX, top_k=3), "HybridRetriever has no argument 'top_k'; write k="),
    (lambda: LangChainHybrid.from_index(INDEX, filters={}), 'write search_kwargs={"filter": …}'),
    (lambda: LangChainRetriever.from_index(INDEX, filter={}), 'write search_kwargs={"filter": …}'),
    (lambda: LangChainHybrid.from_index(INDEX, k=1, search_kwargs={"k": 2}), "k is given twice"),
    (lambda: LangChainHybrid.from_index(INDEX, search_kwargs={"filters": {}}), "'filters'; write filter="),
    (
        lambda: LangChainRetriever.from_index(INDEX, search_kwargs={"returns": "x"}),
        "'returns'; it takes filter",
    ),
    (lambda: LangChainRetriever.from_store(None, search_kwargs={"k": 2}), "fetch_k="),
    (lambda: LangChainHybrid.from_index(INDEX).invoke(QUESTION, filters={}), "'filters'; write filter="),
    (lambda: LangChainRetriever.from_index(INDEX, nonsense=1), "PreciseRAG has no argument 'nonsense'"),
    (lambda: LangChainRetriever.from_documents(NODES, ENCODER), "got Document of llama_index"),
    (lambda: LangChainHybrid.from_index("index"), "index must have the method `search`, got str"),
    (lambda: SelfFeedbackChain(LlamaIndexHybrid.from_index(INDEX), LLM), "vectorstore.as_retriever"),
    (lambda: PreciseEmbeddings(**WRONG_WORDS["encoder"]), "'encoder'; write model="),
    (lambda: EvidenceCompressor(**WRONG_WORDS["threshold"]), "'threshold'; write min_score="),
    (lambda: RedundancyCompressor(**WRONG_WORDS["encoder"]), "'encoder'; write embeddings="),
    (lambda: GreedySemanticTextSplitter(encoder=ENCODER), "'encoder'; write embeddings="),
    (lambda: LlamaIndexHybrid.from_documents(NODES, embeddings=ENCODER), "write embed_model="),
    (lambda: LlamaIndexRetriever.from_documents(NODES, ENCODER, k=3), "'k'; write similarity_top_k="),
    (lambda: LlamaIndexHybrid.from_index(INDEX, top_k=3), "'top_k'; write similarity_top_k="),
    (lambda: LlamaIndexRetriever.from_index(INDEX, filter={}), "'filter'; write filters="),
    (lambda: LlamaIndexHybrid.from_index(INDEX, search_kwargs={"filters": {}}), "'filters'; write filter="),
    (lambda: LlamaIndexRetriever.from_documents(DOCUMENTS, ENCODER), "got Document of langchain_core"),
    (lambda: LlamaIndexHybrid.from_index("index"), "index must have the method `search`, got str"),
    (lambda: SelfFeedbackQueryEngine("retriever", LLM), "index.as_retriever"),
    (lambda: SelfFeedbackQueryEngine(model=LLM), "'model'; write llm="),
    (lambda: PreciseEmbedding(**WRONG_WORDS["encoder"]), "'encoder'; write model_name="),
    (lambda: EvidencePostprocessor(**WRONG_WORDS["floor"]), "'floor'; write min_score="),
    (lambda: EvidencePostprocessor().postprocess_nodes(NODES, query_str="x"), "nodes must be NodeWithScore"),
    (lambda: SemanticSegmentationNodeParser(**WRONG_WORDS["embeddings"]), "'embeddings'; write embed_model="),
    (
        lambda: PreciseRAG(INDEX, **WRONG_WORDS["nonsense"]),
        "PreciseRAG has no argument 'nonsense'; its stages are rewriter",
    ),
]


@pytest.mark.parametrize(("made", "message"), WRONG, ids=range(len(WRONG)))
def test_any_other_word_names_the_right_one(made, message):
    with pytest.raises(InputError) as raised:
        made()
    assert type(raised.value) is InputError
    assert message in str(raised.value)
