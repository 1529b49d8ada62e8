"""What OpenInference's instrumentation, which viewers ask for, writes about our components."""

import json
import re
from importlib import import_module
from typing import Any

import pytest

from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder
from support.frameworks import LANGCHAIN, LLAMAINDEX, each_framework
from support.velm import QUESTIONS, TEXTS, documents


@pytest.fixture
def spans(framework):
    """The finished spans of a framework, with what OpenInference writes about it."""
    instrumentation, names = framework.instrumentation
    instrumentor = getattr(pytest.importorskip(f"openinference.instrumentation.{instrumentation}"), names)()
    sdk, export = (
        pytest.importorskip("opentelemetry.sdk.trace"),
        import_module("opentelemetry.sdk.trace.export"),
    )
    memory = import_module("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exporter, provider = memory.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    instrumentor.instrument(tracer_provider=provider)
    yield exporter.get_finished_spans
    instrumentor.uninstrument()


def of_kind(spans, kind: str) -> list[Any]:
    return [span for span in spans() if span.attributes.get("openinference.span.kind") == kind]


def documents_of(span: Any, prefix: str) -> list[dict[str, Any]]:
    """The documents in the attributes of a span, in order."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in span.attributes.items():
        if named := re.fullmatch(rf"{re.escape(prefix)}\.(\d+)\.document\.(\w+)", key):
            found.setdefault(int(named[1]), {})[named[2]] = value
    return [found[number] for number in sorted(found)]


@each_framework
@pytest.mark.parametrize("is_async", [False, True])
async def test_retrieval_is_a_span_with_documents(spans, framework, is_async):
    over = framework.retriever.from_documents(documents(framework), HashEncoder())
    found = await framework.afind(over, QUESTIONS[0]) if is_async else framework.find(over, QUESTIONS[0])
    span = next(one for one in of_kind(spans, "RETRIEVER") if documents_of(one, "retrieval.documents"))
    assert QUESTIONS[0] in span.attributes["input.value"]
    written = documents_of(span, "retrieval.documents")
    assert [one["content"].strip() for one in written] == [framework.text(piece).strip() for piece in found]
    for one, piece in zip(written, found, strict=True):
        assert read_facts(json.loads(one["metadata"])) == read_facts(piece)
    ids = {span.context.span_id for span in spans()}
    assert all(span.parent is None or span.parent.span_id in ids for span in spans())


@pytest.mark.parametrize("framework", [LLAMAINDEX])
def test_a_reranking_of_llamaindex_is_a_span(spans, framework):
    pieces = [framework.piece(text, name) for name, text in TEXTS.items() if text.strip()]
    kept = framework.cut(framework.part("Rerank", reranker="packaged", top_n=1), pieces, QUESTIONS[0])
    (span,) = of_kind(spans, "RERANKER")
    assert span.attributes["reranker.query"] == QUESTIONS[0]
    (sent,) = documents_of(span, "reranker.output_documents")
    assert (sent["id"], sent["score"]) == ("mill", pytest.approx(kept[0].score))


@pytest.mark.parametrize("framework", [LANGCHAIN])
def test_a_compressor_of_langchain_and_the_path_of_a_retriever_are_spans_of_a_chain(spans, framework):
    compressor = framework.part("Evidence", reranker="packaged")
    kept = framework.cut(compressor, documents(framework, pieces=True), QUESTIONS[0])
    framework.find(framework.retriever.from_documents(documents(framework), HashEncoder()), QUESTIONS[0])
    by_name = {span.name: span for span in spans()}
    assert by_name["PreciseRAG"].parent.span_id == by_name["PreciseRetriever"].context.span_id
    span = by_name["EvidenceCompressor"]
    assert span.attributes["openinference.span.kind"] == "CHAIN"
    written = json.loads(span.attributes["output.value"])
    assert [one["page_content"] for one in written] == [document.page_content for document in kept]
