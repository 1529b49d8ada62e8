"""Searches of other libraries over units."""

import pytest

from precise_rag.evaluation.peers.searches import LlamaIndexLLMRerank
from precise_rag.evaluation.peers.units import Unit
from precise_rag.testing import HashEncoder, ScriptedLLM
from support.village import dataset

pytest.importorskip("llama_index.core")


def test_a_reply_that_llm_rerank_cannot_read_returns_nothing() -> None:
    documents = dataset().documents
    units = [Unit(d.id, 0, len(d.text), d.text) for d in documents]
    for text in ("Doc: 3rd, Relevance: 7", "the third one, I think", "Doc: 99, Relevance: 7"):
        search = LlamaIndexLLMRerank(documents, units, HashEncoder(), ScriptedLLM([text]))
        assert search.search("Who built the mill?", 5) == []
