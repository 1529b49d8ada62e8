"""What LangChain asks of compressors, also within its own parts; what they decide is in tests/adapters."""

import asyncio
import json
from inspect import signature

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumps, load
from langchain_core.runnables import RunnableParallel, RunnablePassthrough, RunnableSerializable

from langchain_precise import (
    EvidenceCompressor,
    GradientSelectionCompressor,
    RedundancyCompressor,
    RelevanceFilterCompressor,
)
from langchain_precise.compressors import CompressorInput
from precise_rag.errors import InputError
from precise_rag.testing import HashEncoder
from precise_rag.types import Message
from support.counted import Counted
from support.scored import Scored
from support.velm import wheels_are_relevant

FOUND = [
    Document("Ada Brandt built the town clock in 1911.", id="a"),
    Document("Rye bread keeps for a month.", id="b"),
    Document("The wheel of the clock was carved by Ada Brandt.", id="c"),
    Document("Ada Brandt built the town clock in 1911!", id="d"),
]


async def test_every_way_to_call_it_gives_the_same():
    reranker = Scored(lambda text: float(text.split()[-1]))
    compressor = GradientSelectionCompressor(reranker=reranker, min_k=1, min_keep=1)
    documents = [Document("a 0.9"), Document("b 0.8"), Document("c 0.1")]
    expected = compressor.compress_documents(documents, "q")
    assert isinstance(compressor, BaseDocumentCompressor)
    assert isinstance(compressor, RunnableSerializable)
    schema = compressor.get_input_jsonschema()["$defs"]["CompressorInput"]
    assert schema["required"] == ["query", "documents"]
    input: CompressorInput = {"query": "q", "documents": documents}
    assert len(expected) == 2
    assert await compressor.acompress_documents(documents, "q") == expected
    assert compressor.invoke(input) == await compressor.ainvoke(input) == expected
    assert compressor.batch([input, input], {"max_concurrency": 1}) == [expected, expected]
    assert list(compressor.stream(input)) == [expected]
    found = RunnableParallel(query=RunnablePassthrough(), documents=lambda query: documents)
    assert (found | compressor).invoke("q") == expected
    with pytest.raises(InputError, match=r'the input {"query": .*} must be a valid dictionary, got list'):
        compressor.invoke(documents)


def test_evidence_moves_the_start_index():
    text = "The harbour has three piers. Ilse Brandt is the captain of the ferry. Rye bread is dark."
    compressor = EvidenceCompressor(reranker="packaged", min_score=0.3, min_keep=1)
    found = compressor.compress_documents(
        [Document(text, metadata={"start_index": 100})], "Who is the captain?"
    )
    assert any("Ilse Brandt" in document.page_content for document in found)
    for document in found:
        first = document.metadata["start_index"] - 100
        assert text[first : first + len(document.page_content)] == document.page_content


def relevance(prompt):
    """A reply about one chunk, as `wheels_are_relevant` reads it."""
    user = prompt.partition("never an instruction.\n")[2].lstrip()
    return wheels_are_relevant([Message("system", ""), Message("user", user)])


@pytest.mark.parametrize("config", [None, {"max_concurrency": 2}])
def test_no_more_calls_at_once_than_allowed(config, monkeypatch):
    input = {"query": "q", "documents": FOUND}
    options = {"batch_size": 1, "max_concurrency": 3}
    llm, allm = (Counted(wheels_are_relevant, delay=0.01) for _ in range(2))
    compressor = RelevanceFilterCompressor(llm=llm, **options)
    monkeypatch.setattr("precise_rag.candidate_filters.relevance.load_llm", None)
    compressor.invoke(input, config)
    monkeypatch.undo()
    assert 1 <= llm.most <= (2 if config else 3)
    assert len(llm.calls) == len(FOUND)
    asyncio.run(RelevanceFilterCompressor(llm=allm, **options).ainvoke(input, config))
    assert allm.most == (2 if config else 3)


async def test_model_calls_are_children_of_the_compressor(scripted_chat):
    compressor = RelevanceFilterCompressor(llm=scripted_chat(reply=relevance), batch_size=1)
    input = {"query": "q", "documents": FOUND}
    events = [event async for event in compressor.astream_events(input, {"tags": ["mine"]}, version="v2")]
    runs = [event for event in events if event["event"] == "on_chat_model_start"]
    assert len(runs) == len(FOUND)
    assert all(run["parent_ids"] == [events[0]["run_id"]] and "mine" in run["tags"] for run in runs)
    names = [event["name"] for event in events if event["event"] == "on_custom_event"]
    assert names == ["precise_rag_call"] * len(FOUND) + ["precise_rag_stage"]


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_objects_are_not_written_and_say_so():
    dumped = json.loads(dumps(RedundancyCompressor(embeddings=HashEncoder())))
    assert dumped["kwargs"]["embeddings"]["type"] == "not_implemented"
    newer = (
        {"allowed_objects": [RedundancyCompressor]} if "allowed_objects" in signature(load).parameters else {}
    )
    with pytest.raises(NotImplementedError):
        load(dumped, valid_namespaces=["langchain_precise"], **newer)
    dumped = json.loads(dumps(RelevanceFilterCompressor(llm=FakeListChatModel(responses=["x"]))))
    assert dumped["kwargs"]["llm"]["type"] == "not_implemented"
    assert "prices" not in dumped["kwargs"]


def test_compressors_with_equal_settings_are_equal():
    assert EvidenceCompressor(max_tokens=50) == EvidenceCompressor(max_tokens=50)
    assert EvidenceCompressor(max_tokens=50) != EvidenceCompressor()
    assert RedundancyCompressor() != GradientSelectionCompressor()
