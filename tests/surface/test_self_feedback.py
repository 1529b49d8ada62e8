"""What the self-feedback components send with their defaults, over stock retrievers and over ours."""

import json

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import Document as LlamaIndexDocument

import langchain_precise
import llamaindex_precise
from precise_rag import Document, PreciseRAG
from precise_rag.index import HybridIndex
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.tokens import estimate_tokens
from support.llamaindex import HashEmbedding

TEXTS = {
    "mill": (
        "The mill grinds rye for three villages. Its wheel was carved by Runa Stell in 1902. "
        "Oak from the north slope was used. The miller sleeps by day. A cat guards the flour. "
        "The stream freezes in January. Nobody grinds then. Children skate past the mill."
    ),
    "ferry": (
        "The ferry to Velm leaves at nine. It carries mail and bread. In storms it stays in port. "
        "A red lantern says so. The captain has sailed since 1998. Tickets are sold on board."
    ),
}
QUESTION = "Who carved the wheel of the mill?"
INDEX = HybridIndex.build([Document(name, text) for name, text in TEXTS.items()], HashEncoder())


def stock_llamaindex():
    documents = [LlamaIndexDocument(doc_id=name, text=text) for name, text in TEXTS.items()]
    return VectorStoreIndex.from_documents(documents, embed_model=HashEmbedding()).as_retriever()


def stock_langchain():
    documents = [LangChainDocument(text, id=name) for name, text in TEXTS.items()]
    embeddings = langchain_precise.PreciseEmbeddings(HashEncoder())
    return InMemoryVectorStore.from_documents(documents, embeddings).as_retriever()


def ask_llamaindex(retriever, llm, **options):
    response = llamaindex_precise.SelfFeedbackQueryEngine(retriever, llm, **options).query(QUESTION)
    return [item.node.get_content() for item in response.source_nodes]


def ask_langchain(retriever, llm, **options):
    output = langchain_precise.SelfFeedbackChain(retriever, llm, **options).invoke(QUESTION)
    return [document.page_content for document in output["context"]]


OURS = [
    pytest.param(
        ask_llamaindex, lambda: llamaindex_precise.papers.HybridRetriever.from_index(INDEX), id="llamaindex"
    ),
    pytest.param(
        ask_langchain, lambda: langchain_precise.papers.HybridRetriever.from_index(INDEX), id="langchain"
    ),
]
STOCK = [
    pytest.param(ask_llamaindex, stock_llamaindex, id="stock llamaindex"),
    pytest.param(ask_langchain, stock_langchain, id="stock langchain"),
]


@pytest.mark.parametrize(("ask", "retriever"), [*OURS, *STOCK])
@pytest.mark.parametrize("adjustment", [1, -1])
def test_more_and_less_change_what_is_sent(ask, retriever, adjustment):
    low = json.dumps({"reason": "r", "score": 3, "adjustment": adjustment})
    llm = ScriptedLLM(["First.", low, "Second.", low, "Third.", low])
    ask(retriever(), llm)
    prompts = [call.text for call in llm.calls[::2]]
    assert len(prompts) > 1
    assert len(set(prompts)) == len(prompts)
    assert (len(prompts[1]) > len(prompts[0])) == (adjustment > 0)


@pytest.mark.parametrize(("ask", "retriever"), OURS)
def test_over_an_index_they_send_what_the_pipeline_sends(ask, retriever):
    expected = PreciseRAG(INDEX).answer(QUESTION).passages
    sent = ask(retriever(), ScriptedLLM(["An answer."]), feedback=None)
    assert sent == [passage.text for passage in expected]


@pytest.mark.parametrize(("ask", "retriever"), STOCK)
def test_of_stock_texts_only_the_evidence_is_sent(ask, retriever):
    sent = ask(retriever(), ScriptedLLM(["An answer."]), feedback=None)
    assert any("Runa Stell" in text for text in sent)
    assert not any(text in TEXTS["ferry"] for text in sent)
    assert sum(map(estimate_tokens, sent)) < sum(map(estimate_tokens, TEXTS.values()))
    whole = ask(retriever(), ScriptedLLM(["An answer."]), feedback=None, evidence=None)
    assert set(whole) <= set(TEXTS.values())


def test_a_sentence_that_comes_again_is_sent_once():
    chunks = [LangChainDocument(TEXTS["mill"], id="one"), LangChainDocument(TEXTS["mill"][:84], id="two")]
    embeddings = langchain_precise.PreciseEmbeddings(HashEncoder())
    retriever = InMemoryVectorStore.from_documents(chunks, embeddings).as_retriever()
    sent = ask_langchain(retriever, ScriptedLLM(["An answer."]), feedback=None)
    assert len(sent) == len(set(sent))
