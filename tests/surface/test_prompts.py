"""What the frameworks' own engines and chains really write into the prompt of a model."""

import pytest
from langchain_core.prompts import format_document
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode

import langchain_precise
from precise_rag import read_facts
from precise_rag.testing import HashEncoder
from support.documents import read_document
from support.frameworks import LANGCHAIN, LLAMAINDEX, each_framework

SHED = "# Shed\n\nThe shed is locked. Ask Ada for the key."
QUESTION = "How often is the oil of the pump changed, and where is the can?"
TEXTS = {"pump.md": read_document("pump.md"), "shed.md": SHED}


class Listening(MockLLM):
    """A model that remembers its prompt."""

    prompt: str = ""

    def complete(self, prompt, formatted=False, **kwargs):
        self.prompt = prompt
        return super().complete(prompt, formatted, **kwargs)


def retriever(framework, **metadata):
    """A retriever over the texts, each with its file and other metadata."""
    documents = [
        framework.document(text, name, file_path=f"docs/{name}", **metadata) for name, text in TEXTS.items()
    ]
    return framework.retriever.from_documents(documents, HashEncoder(), reranker="packaged")


def test_a_stock_engine_writes_excerpts_below_their_headings():
    llm = Listening(max_tokens=8)
    engine = RetrieverQueryEngine.from_args(retriever(LLAMAINDEX), llm=llm)
    for item in engine.query(QUESTION).source_nodes:
        facts = read_facts(item)
        assert item.text == TEXTS[facts["doc_id"]][facts["start"] : facts["end"]]
        assert item.node.get_content(MetadataMode.LLM).strip() in llm.prompt
    assert "Change the oil of the pump every month.  Use the blue can." in llm.prompt
    assert llm.prompt.count("section: Pump M-7\n") == 1
    for ours in ("precise", "score", "reason", "sentences"):
        assert ours not in llm.prompt


@pytest.mark.parametrize("name", [None, "Rerank", "Evidence"])
def test_the_document_prompt_of_langchain_writes_the_section_of_each_piece(name):
    found = retriever(LANGCHAIN).invoke(QUESTION)
    if name:  # what stood above for the first stage is not what stands above now
        found = retriever(LANGCHAIN).invoke(QUESTION, k=4)
        part = getattr(langchain_precise, f"{name}Compressor")(reranker="packaged")
        found = part.invoke({"query": "How often is the oil changed?", "documents": found[::-1]})
    for document in found:
        facts, section = read_facts(document), document.metadata["section"]
        assert document.page_content == TEXTS[facts["doc_id"]][facts["start"] : facts["end"]]
        assert section == " > ".join(facts.get("above", []))
        written = f"{section}\n{document.page_content}" if section else document.page_content
        assert format_document(document, langchain_precise.DOCUMENT_PROMPT) == written


@each_framework
def test_an_entry_named_section_that_is_the_users_stays(framework):
    found = framework.find(retriever(framework, section=7), QUESTION)
    assert {framework.metadata(piece)["section"] for piece in found} == {7}
