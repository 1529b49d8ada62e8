"""A wrong type in a constructor of either framework: one error of ours, which names the argument."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import RunnableLambda
from llama_index.core.schema import QueryBundle, TextNode

import langchain_precise
import langchain_precise.papers
import llamaindex_precise
import llamaindex_precise.papers
from precise_rag import PreciseRAG
from precise_rag.errors import InputError
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

TEXT = "Ada Brandt built the lighthouse. It was lit in May."
LLAMA = [TextNode(text=TEXT)]
LANG = [LangChainDocument(TEXT)]


class Wrong:
    """An object that nothing can use."""


def answer(prompt: str) -> str:
    return "May [1]."


def over(documents: list[Any], framework: Any) -> Any:
    """A retriever of the framework over the documents."""
    words = {"embed_model" if framework.__name__.startswith("llama") else "embeddings": HashEncoder()}
    return framework.papers.HybridRetriever.from_documents(documents, **words)


def engine(**given: Any) -> Any:
    """LlamaIndex's engine, over a retriever unless one is given."""
    given = {"retriever": over(LLAMA, llamaindex_precise), "llm": answer} | given
    return llamaindex_precise.SelfFeedbackQueryEngine(**given)


def chain(**given: Any) -> Any:
    """LangChain's chain, likewise."""
    given = {"retriever": RunnableLambda(lambda query: LANG), "llm": answer} | given
    return langchain_precise.SelfFeedbackChain(**given)


def searched(name: str, framework: Any, documents: list[Any]) -> Callable[..., Any]:
    """`from_documents` of a component, with its documents and a fast encoder unless they are given."""

    def make(**given: Any) -> Any:
        words = {"embed_model" if framework.__name__.startswith("llama") else "embeddings": HashEncoder()}
        return getattr(framework, name).from_documents(**{"documents": documents} | words | given)

    return make


MAKERS: list[tuple[Callable[..., Any], str]] = [
    (engine, "retriever llm judge reranker selector node_postprocessors"),
    (chain, "retriever llm judge reranker selector"),
    (searched("PreciseRetriever", llamaindex_precise, LLAMA), "documents embed_model reranker evidence"),
    (searched("PreciseRetriever", langchain_precise, LANG), "documents embeddings reranker evidence"),
    (searched("HybridRetriever", llamaindex_precise.papers, LLAMA), "documents embed_model"),
    (searched("HybridRetriever", langchain_precise.papers, LANG), "documents embeddings"),
    (llamaindex_precise.papers.HybridRetriever, "index"),
    (langchain_precise.papers.HybridRetriever, "index"),
    (llamaindex_precise.PreciseRetriever.from_index, "index"),
    (langchain_precise.PreciseRetriever.from_index, "index"),
    (llamaindex_precise.PreciseRetriever.from_store, "store"),
    (langchain_precise.PreciseRetriever.from_store, "store"),
    (llamaindex_precise.EvidencePostprocessor, "reranker max_tokens"),
    (langchain_precise.EvidenceCompressor, "reranker max_tokens"),
    (llamaindex_precise.papers.RedundancyPostprocessor, "embed_model similarity_threshold"),
    (langchain_precise.papers.RedundancyCompressor, "embeddings similarity_threshold"),
    (llamaindex_precise.papers.RelevanceFilterPostprocessor, "llm"),
    (langchain_precise.papers.RelevanceFilterCompressor, "llm"),
    (llamaindex_precise.SemanticSegmentationNodeParser, "embed_model max_tokens model"),
    (langchain_precise.SemanticSegmentationTextSplitter, "embeddings max_tokens model"),
    (llamaindex_precise.PreciseRetriever.from_rag, "rag"),
    (langchain_precise.PreciseRetriever.from_rag, "rag"),
    (llamaindex_precise.papers.HybridRetriever.from_database, "location"),
    (langchain_precise.papers.HybridRetriever.from_database, "location"),
    (langchain_precise.PreciseEmbeddings, "model device"),
]


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        pytest.param(make, argument, id=f"{getattr(make, '__module__', '')}-{place}-{argument}")
        for place, (make, arguments) in enumerate(MAKERS)
        for argument in arguments.split()
    ],
)
def test_a_wrong_type_is_one_error_that_names_the_argument(make: Callable[..., Any], argument: str) -> None:
    with pytest.raises(InputError) as caught:
        make(**{argument: Wrong()})
    message = str(caught.value)
    assert message.startswith(argument), message
    assert "Wrong" in message
    assert "pydantic" not in message
    assert "\n" not in message
    assert len(message) < 300


def test_a_number_out_of_range_is_shown() -> None:
    with pytest.raises(InputError, match=r"^top_n must be greater than 0, got 0$"):
        llamaindex_precise.papers.PreciseRerankPostprocessor(top_n=0)


@pytest.mark.parametrize("framework", [llamaindex_precise, langchain_precise])
def test_a_text_is_not_a_list_of_documents(framework: Any) -> None:
    with pytest.raises(InputError, match=r"documents must be a list of .*, got str"):
        framework.PreciseRetriever.from_documents("a text")


@pytest.mark.parametrize(
    "llm", [lambda prompt: "May.", lambda messages: "May.", lambda query, /: "May.", lambda *args: "May."]
)
def test_a_function_is_a_model_whatever_its_parameter_is_called(llm: Any) -> None:
    rag = PreciseRAG.from_documents([Document("a", TEXT)], llm, encoder=HashEncoder(), feedback=None)
    assert rag.answer("When was it lit?").text == "May."
    assert str(engine(llm=llm, feedback=None).query("When was it lit?")) == "May."
    assert chain(llm=llm, feedback=None).invoke("When was it lit?")["answer"] == "May."


class Reversing:
    """A postprocessor of LlamaIndex that has its method, and not its base."""

    def postprocess_nodes(self, nodes: list[Any], **given: Any) -> list[Any]:
        return nodes[::-1]


def test_a_postprocessor_is_known_by_its_method() -> None:
    found = engine(node_postprocessors=[Reversing()]).retrieve(QueryBundle("When was it lit?"))
    assert found
