"""Splitters and searches of other libraries, which the plans of benchmarks name."""

from collections.abc import Sequence

import pytest

from benchmarks.peers.searches import LlamaIndexLLMRerank
from precise_rag.evaluation.splitters import load_splitter
from precise_rag.evaluation.units import Unit, UnitIndex
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.types import Message
from support.village import dataset

pytest.importorskip("llama_index.core")


def test_a_reply_that_llm_rerank_cannot_read_returns_nothing() -> None:
    documents = dataset().documents
    units = [Unit(d.id, 0, len(d.text), d.text) for d in documents]
    for text in ("Doc: 3rd, Relevance: 7", "the third one, I think", "Doc: 99, Relevance: 7"):
        search = LlamaIndexLLMRerank(documents, units, HashEncoder(), ScriptedLLM([text]))
        assert search.search("Who built the mill?", 5) == []


def test_llm_rerank_asks_ten_units_at_a_time_and_keeps_what_the_model_names() -> None:
    documents = dataset().documents
    units = [
        Unit(d.id, start, start + 20, d.text[start : start + 20])
        for d in documents
        for start in range(0, len(d.text) - 20, 20)
    ]

    def reply(messages: Sequence[Message]) -> str:
        shown = messages[-1].content
        shown = shown[shown.rindex("Let's try this now") :]
        return "Doc: 2, Relevance: 9" if "Document 2" in shown else "Doc: 1, Relevance: 1"

    llm = ScriptedLLM(reply)
    ranked = UnitIndex(documents, units, HashEncoder(), "dense").search("Who built the mill?", 15)
    chosen = LlamaIndexLLMRerank(documents, units, HashEncoder(), llm).search("Who built the mill?", 15)
    assert len(llm.calls) == 2
    assert {c.id for c in chosen} == {ranked[1].id, ranked[11].id}


def test_a_semantic_splitter_covers_the_text_and_knows_where() -> None:
    (document, *_) = dataset().documents
    units = load_splitter("llamaindex-semantic", HashEncoder())(document)
    assert "".join("".join(u.text for u in units).split()) == "".join(document.text.split())
    assert all("".join(document.text[u.start : u.end].split()) == "".join(u.text.split()) for u in units)
