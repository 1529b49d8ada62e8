"""What OpenInference's instrumentation of LlamaIndex, which viewers ask for, writes about our components."""

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from llamaindex_precise import PreciseRerankPostprocessor, PreciseRetriever
from support.spans import documents_of, exporter_and_provider, of_kind

QUESTION = "Who was the last keeper?"


@pytest.fixture
def spans():
    instrumentation = pytest.importorskip("openinference.instrumentation.llama_index")
    exporter, provider = exporter_and_provider()
    instrumentor = instrumentation.LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()


@pytest.mark.parametrize("is_async", [False, True])
async def test_retrieval_is_a_span_with_documents(spans, documents, embedding, is_async):
    retriever = PreciseRetriever.from_documents(documents, embedding)
    rerank = PreciseRerankPostprocessor(reranker="packaged", top_n=2)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), node_postprocessors=[rerank])
    response = await engine.aquery(QUESTION) if is_async else engine.query(QUESTION)
    retrieved = of_kind(spans, "RETRIEVER")
    assert retrieved
    span = next(span for span in retrieved if documents_of(span))
    assert span.attributes["input.value"] == QUESTION
    found = documents_of(span)
    assert all({"id", "score", "content"} <= one.keys() for one in found)
    assert any("Ada Holm" in one["content"] for one in found)
    (reranked,) = of_kind(spans, "RERANKER")
    assert reranked.attributes["reranker.query"] == QUESTION
    sent = documents_of(reranked, "reranker.output_documents")
    assert [one["id"] for one in sent] == [one.node.node_id for one in response.source_nodes]
    assert [one["score"] for one in sent] == pytest.approx([one.score for one in response.source_nodes])
    ids = {span.context.span_id for span in spans.get_finished_spans()}
    assert all(span.parent is None or span.parent.span_id in ids for span in spans.get_finished_spans())
