"""Every replacement on the migration page is made as its row has it, and does its work."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document as LangDocument
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaDocument
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode

import langchain_precise
import llamaindex_precise
from precise_rag.testing import HashEncoder

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "migration.md").read_text("utf-8")
LLAMAINDEX, LANGCHAIN = (part.split("\n## ")[0] for part in PAGE.split("## From ")[1:])
QUESTION = "Who keeps the lamp?"
TEXTS = ("The lamp is lit at dusk. Ilse Brandt keeps it.", "The ferry sails at nine.")
NUMBERS = {"max_tokens": 256, "chunk_size": 256, "chunk_overlap": 0, "top_n": 1, "min_score": 0.02}
JUDGEMENT = '{"reason": "right", "score": 10, "adjustment": 0}'


def components(part):
    """The components in the second column of a table, once each."""
    cells = [line.split(" | ")[1] for line in part.splitlines() if line.startswith("| ")][1:]
    found = (code for cell in cells for code in re.findall(r"`([^`]+)`", cell))
    return list(dict.fromkeys(code for code in found if code[0].isupper()))


def made(code, values):
    """The component that the code in a cell makes; a class is made from documents, or as it comes."""
    code = re.sub(r"(\w+)=…", r"\1=\1", code).replace("(…, ", "(documents, ")
    found: Any = eval(code, {**NUMBERS, **values})
    if not inspect.isclass(found):
        return found
    made_from: Any = found
    if "SelfFeedback" in code:
        return made_from(retriever=values["retriever"], llm=values["llm"])
    return made_from.from_documents(values["documents"])


@pytest.fixture(autouse=True)
def cheap_encoder(monkeypatch):
    for loader in ("encoders.load._local_encoder", "index.load.load_packaged_encoder"):
        monkeypatch.setattr(f"precise_rag.{loader}", lambda *source, **options: HashEncoder())


@pytest.mark.parametrize("code", components(LLAMAINDEX))
def test_a_llamaindex_replacement_works(code):
    documents = [LlamaDocument(text=text, doc_id=str(place)) for place, text in enumerate(TEXTS)]
    values = {
        **vars(llamaindex_precise),
        **vars(llamaindex_precise.papers),
        "documents": documents,
        "embed_model": llamaindex_precise.PreciseEmbedding(),
        "index": VectorStoreIndex.from_documents(
            documents, embed_model=llamaindex_precise.PreciseEmbedding()
        ),
        "llm": MockLLM(),
        "model": "packaged",
        "retriever": llamaindex_precise.papers.HybridRetriever.from_documents(documents),
    }
    component = made(code, values)
    nodes = [NodeWithScore(node=TextNode(text=text), score=0.9) for text in TEXTS]
    if hasattr(component, "get_nodes_from_documents"):
        assert component.get_nodes_from_documents(documents)
    elif hasattr(component, "retrieve") and not hasattr(component, "query"):
        assert component.retrieve(QUESTION)[0].node.text.startswith(("The lamp", "Ilse"))
    elif hasattr(component, "postprocess_nodes"):
        assert component.postprocess_nodes(nodes, query_str=QUESTION)
    elif hasattr(component, "query"):
        assert component.query(QUESTION).source_nodes
    else:
        assert component.get_text_embedding("lamp")


@pytest.mark.parametrize("code", components(LANGCHAIN))
def test_a_langchain_replacement_works(code):
    documents = [LangDocument(text, id=str(place)) for place, text in enumerate(TEXTS)]
    replies = [AIMessage("Ilse Brandt [1]."), *[AIMessage(JUDGEMENT)] * 3]
    values = {
        **vars(langchain_precise),
        **vars(langchain_precise.papers),
        "vectorstore": InMemoryVectorStore.from_documents(documents, langchain_precise.PreciseEmbeddings()),
        "documents": documents,
        "embeddings": langchain_precise.PreciseEmbeddings(),
        "llm": GenericFakeChatModel(messages=iter(replies)),
        "model": "packaged",
        "retriever": langchain_precise.papers.HybridRetriever.from_documents(documents),
    }
    component = made(code, values)
    if hasattr(component, "split_documents"):
        assert component.split_documents(documents)
    elif hasattr(component, "compress_documents"):
        assert component.compress_documents(documents, QUESTION)
    else:
        found = component.invoke(QUESTION)
        assert found if isinstance(found, list) else found["answer"]
