"""What the frameworks' own engines and chains really write into the prompt of a model."""

from itertools import pairwise

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.prompts import format_document
from llama_index.core import Document as LlamaIndexDocument
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

import langchain_precise
import llamaindex_precise
from precise_rag import read_facts
from precise_rag.testing import HashEncoder
from precise_rag.tokens import estimate_tokens

PUMP = """# Pump M-7

## Oil

Change the oil of the pump every month.  Use the blue can.


The oil can is in the shed:

    open shed
        take can

## Paint

The pump is painted green once in ten years, and no one in the yard remembers why it was ever red at all.

The oil of the pump must never be red.
"""
SHED = "# Shed\n\nThe shed is locked. Ask Ada for the key."
QUESTION = "How often is the oil of the pump changed, and where is the can?"
TEXTS = {"pump.md": PUMP, "shed.md": SHED}


class Reading(MockLLM):
    """A model that remembers its prompt."""

    prompt: str = ""

    def complete(self, prompt, formatted=False, **kwargs):
        self.prompt = prompt
        return super().complete(prompt, formatted, **kwargs)


@pytest.fixture(scope="module")
def llamaindex_retriever():
    documents = [
        LlamaIndexDocument(text=text, doc_id=name, metadata={"file_path": f"docs/{name}"})
        for name, text in TEXTS.items()
    ]
    return llamaindex_precise.PreciseRetriever.from_documents(documents, HashEncoder(), reranker="packaged")


@pytest.fixture(scope="module")
def langchain_retriever():
    documents = [LangChainDocument(text, id=name) for name, text in TEXTS.items()]
    return langchain_precise.PreciseRetriever.from_documents(documents, HashEncoder(), reranker="packaged")


def test_a_stock_engine_writes_excerpts_below_their_headings(llamaindex_retriever):
    llm = Reading(max_tokens=8)
    engine = RetrieverQueryEngine.from_args(llamaindex_retriever, llm=llm)
    nodes = [item.node for item in engine.query(QUESTION).source_nodes]
    for node in nodes:
        assert isinstance(node, TextNode)
        assert node.ref_doc_id
        assert node.text == TEXTS[node.ref_doc_id][node.start_char_idx : node.end_char_idx]
        assert len(read_facts(node)["sentences"]) >= 1
    assert [node for node in nodes if node.get_content(MetadataMode.LLM).strip() not in llm.prompt] == []
    assert "Change the oil of the pump every month.  Use the blue can." in llm.prompt
    assert llm.prompt.count("section: Pump M-7 > Oil\n") <= 1
    for own in ("precise", "score", "reason", "sentences"):
        assert own not in llm.prompt


def test_excerpts_of_one_document_are_in_the_order_of_its_text(llamaindex_retriever, langchain_retriever):
    places = [
        [read_facts(piece) for piece in found]
        for found in (llamaindex_retriever.retrieve(QUESTION), langchain_retriever.invoke(QUESTION))
    ]
    for facts in places:
        assert all(
            before["end"] <= after["start"]
            for before, after in pairwise(facts)
            if before["doc_id"] == after["doc_id"]
        )
        ids = [one["doc_id"] for one in facts]
        assert len(set(ids)) == 1 + sum(a != b for a, b in pairwise(ids))


def test_the_document_prompt_of_langchain_writes_each_section_once(langchain_retriever):
    found = langchain_retriever.invoke(QUESTION)
    written = "\n\n".join(format_document(d, langchain_precise.DOCUMENT_PROMPT) for d in found)
    shown = [d.metadata["section"] for d in found if d.metadata["section"]]
    assert shown
    for document in found:
        text = TEXTS[read_facts(document)["doc_id"]]
        place = read_facts(document)
        assert document.page_content == text[place["start"] : place["end"]]
        above = " > ".join(place.get("above", []))
        assert document.metadata["section"] in ("", above)
    assert written.startswith(f"{shown[0]}\n") or not found[0].metadata["section"]
    assert all(before != after for before, after in pairwise(shown))


def test_an_entry_named_section_that_is_the_users_stays():
    documents = [LlamaIndexDocument(text=PUMP, doc_id="pump.md", metadata={"section": 7})]
    retriever = llamaindex_precise.PreciseRetriever.from_documents(
        documents, HashEncoder(), reranker="packaged"
    )
    assert {item.node.metadata["section"] for item in retriever.retrieve(QUESTION)} == {7}
    given = [LangChainDocument(PUMP, id="pump.md", metadata={"section": 7})]
    theirs = langchain_precise.PreciseRetriever.from_documents(given, HashEncoder(), reranker="packaged")
    assert {document.metadata["section"] for document in theirs.invoke(QUESTION)} == {7}


def test_the_place_of_a_stock_chunk_moves_with_its_excerpt():
    chunk = LangChainDocument(PUMP[12:], metadata={"start_index": 12})
    sent = langchain_precise.EvidenceCompressor(reranker="packaged", share_of_best=0.9, min_keep=1)
    for document in sent.compress_documents([chunk], QUESTION):
        start = document.metadata["start_index"]
        assert document.page_content == PUMP[start : start + len(document.page_content)]


@pytest.mark.parametrize("max_tokens", [20, 45, 90])
def test_max_tokens_counts_what_the_framework_writes(max_tokens):
    documents = [
        LlamaIndexDocument(text=text, doc_id=name, metadata={"file_path": f"somewhere/docs/{name}"})
        for name, text in TEXTS.items()
    ]
    options = {"reranker": "packaged", "max_tokens": max_tokens}
    retriever = llamaindex_precise.PreciseRetriever.from_documents(documents, HashEncoder(), **options)
    found = retriever.retrieve(QUESTION)
    billed = sum(estimate_tokens(item.node.get_content(MetadataMode.LLM)) for item in found)
    # the entry's name: "section: "
    assert billed <= max_tokens + 2 * len(found)
    stock = [
        NodeWithScore(node=TextNode(text=PUMP, metadata={"file_path": "somewhere/docs/pump.md"}), score=1)
    ]
    evidence = llamaindex_precise.EvidencePostprocessor(**options, share_of_best=0, min_score=0)
    cut = evidence.postprocess_nodes(stock, query_str=QUESTION)
    assert sum(estimate_tokens(item.node.get_content(MetadataMode.LLM)) for item in cut) <= max_tokens + 2
    given = [LangChainDocument(text, id=name) for name, text in TEXTS.items()]
    theirs = langchain_precise.PreciseRetriever.from_documents(given, HashEncoder(), **options)
    written = [format_document(d, langchain_precise.DOCUMENT_PROMPT) for d in theirs.invoke(QUESTION)]
    assert 0 < sum(map(estimate_tokens, written)) <= max_tokens
