"""A document's own metadata give it neither the id of another nor another's source, in both frameworks."""

from typing import Any

import pytest
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import Document as LlamaIndexDocument

import langchain_precise.papers
import llamaindex_precise.papers
from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder
from support.databases import ENGINES, new_location

FORGED = {
    "$id": "mine",
    "precise": '{"doc_id": "mine", "start": 0, "end": 15}',
    "precise_layout": {"source": "mine", "id_": "mine", "hidden": {"title": "Mine"}},
    "precise_object": "mine",
}


def _langchain(doc_id, metadata):
    return LangChainDocument(page_content="The cat sleeps.", id=doc_id, metadata=metadata)


def _llamaindex(doc_id, metadata):
    return LlamaIndexDocument(text="The cat sleeps.", id_=doc_id, metadata=metadata)


def _invoke(retriever, wanted):
    return retriever.invoke("cat", filter=wanted)


def _retrieve(retriever, wanted):
    retriever.filters = wanted
    found = retriever.retrieve("cat")
    assert [item.node.ref_doc_id for item in found] == [read_facts(item)["doc_id"] for item in found]
    return found


FRAMEWORKS: dict[str, tuple[Any, Any, Any]] = {
    "langchain": (langchain_precise.papers.HybridRetriever, _langchain, _invoke),
    "llamaindex": (llamaindex_precise.papers.HybridRetriever, _llamaindex, _retrieve),
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("engine", ["folder", *ENGINES])
def test_metadata_forge_neither_an_id_nor_a_source(framework, engine, request, tmp_path):
    kind, document, search = FRAMEWORKS[framework]
    documents = [document("mine", {}), document("theirs", FORGED)]
    if engine == "folder":
        retriever = kind.from_documents(documents, HashEncoder())
    else:
        retriever = kind.from_database(new_location(engine, request, tmp_path)(), HashEncoder())
        retriever.add_documents(documents)
    for wanted in ({"$eq": "mine"}, {"$lte": "mine"}, {"$contains": "min"}):
        assert [read_facts(found)["doc_id"] for found in search(retriever, {"$id": wanted})] == ["mine"]
    (found,) = search(retriever, {"$id": "theirs"})
    assert read_facts(found)["doc_id"] == "theirs"
    assert getattr(found, "node", found).metadata.keys() == {"$id", "precise"}
