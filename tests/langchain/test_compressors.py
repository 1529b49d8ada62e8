import numpy as np
import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import (
    ConfigurableField,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSerializable,
)

from langchain_precise import (
    GradientSelectionCompressor,
    RedundancyCompressor,
    RerankCompressor,
)
from precise_rag.facts import read_facts
from precise_rag.selection import DEFAULT_SELECTOR

FOUND = [
    Document("Ada Brandt built the town clock in 1911.", id="a"),
    Document("Rye bread keeps for a month.", id="b"),
    Document("The clock of the town was built by Ada Brandt.", id="c"),
    Document("Ada Brandt built the town clock in 1911!", id="d"),
]
SAGE_FIG_8 = [5.103, 4.816, 4.684, 4.617, 4.416, 1.304, 1.189]


def scored(*scores):
    return [Document(f"text {i}", id=str(i), metadata={"relevance_score": s}) for i, s in enumerate(scores)]


class LastWord:
    """A reranker whose score is the number that a text ends with."""

    name = "last-word"
    is_calibrated = True
    score_scale = "probability"

    def __init__(self):
        self.queries = []

    def score(self, query, candidates):
        self.queries.append(query)
        return np.array([float(c.text.split()[-1]) for c in candidates])


def test_the_selector_is_the_core_s_and_langchain_embeddings_tell_paraphrases():
    assert GradientSelectionCompressor(reranker=None).selector() == DEFAULT_SELECTOR
    compressor = RedundancyCompressor(embeddings=DeterministicFakeEmbedding(size=8))
    assert compressor.compress_documents(FOUND[:1], "q")


async def test_every_way_to_call_it_gives_the_same():
    compressor = GradientSelectionCompressor(reranker=LastWord(), min_k=1, min_keep=1)
    documents = [Document("a 0.9"), Document("b 0.8"), Document("c 0.1")]
    expected = compressor.compress_documents(documents, "q")
    runnable = compressor.as_runnable()
    input = {"query": "q", "documents": documents}

    assert len(expected) == 2
    assert await compressor.acompress_documents(documents, "q") == expected
    assert runnable.invoke(input) == expected
    assert await runnable.ainvoke(input) == expected
    assert runnable.batch([input, input], {"max_concurrency": 1}) == [expected, expected]
    assert list(runnable.stream(input)) == [expected]


def test_it_is_a_compressor_and_a_runnable_with_a_schema():
    compressor = GradientSelectionCompressor(reranker=None)
    assert isinstance(compressor, BaseDocumentCompressor)
    assert isinstance(compressor.as_runnable(), RunnableSerializable)
    schema = compressor.as_runnable().get_input_jsonschema()["$defs"]["CompressorInput"]
    assert schema["required"] == ["query", "documents"]


async def test_it_pipes_and_tells_callbacks_what_it_decided():
    chain = RunnableParallel(
        query=RunnablePassthrough(), documents=lambda query: [Document("a 0.9"), Document("b 0.1")]
    ) | GradientSelectionCompressor(reranker=LastWord(), min_k=1, min_keep=1)
    events = [event async for event in chain.astream_events("q", version="v2")]
    [ranked, decided] = [e["data"] for e in events if e["event"] == "on_custom_event"]
    assert ranked["stage"] == "rerank"
    assert decided["stage"] == "GradientSelectionCompressor"
    assert [(c["score"], c["kept"]) for c in decided["candidates"]] == [(0.9, True), (0.1, False)]
    assert [d.page_content for d in events[-1]["data"]["output"]] == ["a 0.9"]


def test_settings_can_be_configured_for_one_call():
    compressor = GradientSelectionCompressor(reranker=None, score_scale="bm25", min_k=1).configurable_fields(
        max_k=ConfigurableField(id="max_k")
    )
    input = {"query": "q", "documents": scored(*SAGE_FIG_8)}
    assert len(compressor.invoke(input)) == 5
    assert len(compressor.invoke(input, {"configurable": {"max_k": 2}})) == 2


def test_another_compressor_of_langchain_reranks():
    compressors = pytest.importorskip("langchain_classic.retrievers.document_compressors")

    def score(self, pairs):
        return [len(text) / 100 for _, text in pairs]

    lengths = type("Lengths", (compressors.cross_encoder.BaseCrossEncoder,), {"score": score})
    stock = compressors.CrossEncoderReranker(model=lengths(), top_n=4)
    kept = RerankCompressor(reranker=stock, top_n=1).compress_documents(FOUND, "q")
    assert [d.id for d in kept] == ["c"]


def test_the_packaged_reranker_finds_the_answer():
    best = RerankCompressor().compress_documents(FOUND[1:3], "Who built the town clock?")[0]
    assert best.id == "c"
    assert 0.0 <= read_facts(best)["score"] <= 1.0
