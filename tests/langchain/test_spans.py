"""What OpenInference's instrumentation of LangChain, which viewers ask for, writes about our components."""

import json

import pytest

from langchain_precise import EvidenceCompressor, PreciseRetriever
from precise_rag import read_facts
from support.spans import documents_of, exporter_and_provider, of_kind

QUESTION = "Who built the town clock?"


@pytest.fixture
def spans():
    instrumentation = pytest.importorskip("openinference.instrumentation.langchain")
    exporter, provider = exporter_and_provider()
    instrumentor = instrumentation.LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()


@pytest.mark.parametrize("is_async", [False, True])
async def test_retrieval_is_a_span_with_documents(spans, documents, encoder, is_async):
    retriever = PreciseRetriever.from_documents(documents, encoder)
    found = await retriever.ainvoke(QUESTION) if is_async else retriever.invoke(QUESTION)
    (span,) = of_kind(spans, "RETRIEVER")
    assert QUESTION in span.attributes["input.value"]
    written = documents_of(span)
    assert [one["content"] for one in written] == [document.page_content for document in found]
    for one, document in zip(written, found, strict=True):
        facts = read_facts(json.loads(one["metadata"]))
        assert (facts["doc_id"], facts["start"]) == ("clock", read_facts(document)["start"])
        assert facts["score"] == pytest.approx(read_facts(document)["score"])
    path = next(span for span in spans.get_finished_spans() if span.name == "PreciseRAG")
    assert path.parent.span_id == span.context.span_id


def test_a_compressor_is_a_span_below_the_chain(spans, documents):
    compressor = EvidenceCompressor(reranker="packaged")
    kept = compressor.invoke({"query": QUESTION, "documents": documents})
    span = next(span for span in spans.get_finished_spans() if span.name == "EvidenceCompressor")
    assert span.attributes["openinference.span.kind"] == "CHAIN"
    written = json.loads(span.attributes["output.value"])
    assert [one["page_content"] for one in written] == [document.page_content for document in kept]
