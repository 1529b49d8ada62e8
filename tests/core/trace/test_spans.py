import json
from typing import Any

import pytest

from precise_rag import Document, PreciseRAG, Trace
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.trace import CallRecord, span_observer
from support.spans import documents_of, exporter_and_provider, of_kind

DOCUMENTS = [
    Document("lamp", "The lamp is lit at dusk. Ilse Brandt keeps it."),
    Document("otter", "Otters sleep by the river. It floods in March."),
]
QUESTION = "Who keeps the lamp?"
REPLIES = ["Ilse Brandt [1].", '{"reason": "borne out", "score": 9, "adjustment": 0}']


def asked(**options: Any) -> tuple[Any, Any]:
    """The spans of one question, and the answer."""
    exporter, provider = exporter_and_provider()
    tracer = provider.get_tracer("app")
    rag = PreciseRAG.from_documents(DOCUMENTS, encoder=HashEncoder(64), llm=ScriptedLLM(REPLIES))
    with tracer.start_as_current_span("request"):
        trace = Trace(QUESTION, observer=span_observer(QUESTION, tracer, **options))
        answer = rag.answer(QUESTION, trace=trace)
    return exporter, answer


def test_a_question_is_spans_of_retrieval_reranking_and_models() -> None:
    exporter, answer = asked()
    *_, request = exporter.get_finished_spans()
    others = [span for span in exporter.get_finished_spans() if span is not request]
    assert all(span.parent.span_id == request.context.span_id for span in others)
    assert all(request.start_time <= span.end_time <= request.end_time for span in others)
    (search,) = of_kind(exporter, "RETRIEVER")
    assert search.attributes["input.value"] == QUESTION
    assert search.attributes["gen_ai.operation.name"] == "retrieval"
    documents = documents_of(search)
    assert {"id", "score", "content", "metadata"} <= documents[0].keys()
    assert any("Ilse" in one["content"] for one in documents)
    assert json.loads(documents[0]["metadata"])["doc_id"] in ("lamp", "otter")
    (reranked,) = of_kind(exporter, "RERANKER")
    scores = [one["score"] for one in documents_of(reranked, "reranker.output_documents")]
    assert scores == sorted(scores, reverse=True)
    calls = of_kind(exporter, "LLM")
    assert [call.attributes["precise.role"] for call in calls] == ["answer", "judge"]
    assert calls[0].attributes["output.value"] == "Ilse Brandt [1]."
    tokens = [call.attributes["gen_ai.usage.input_tokens"] for call in calls]
    assert tokens == [call.input_tokens for call in answer.trace.calls]
    (judged,) = of_kind(exporter, "EVALUATOR")
    assert judged.attributes["precise.score"] == 9


def test_without_text_no_word_of_anybody_is_in_the_spans() -> None:
    exporter, _ = asked(include_text=False)
    shown = json.dumps([dict(span.attributes) for span in exporter.get_finished_spans()], default=str)
    for word in ("Ilse", "keeps", "Otters", "borne"):
        assert word not in shown
    assert "document.id" in shown


def test_a_failed_call_is_an_error_and_keys_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdefghij")
    exporter, provider = exporter_and_provider()
    observe = span_observer(QUESTION, provider.get_tracer("app"))
    error = "refused with sk-0123456789abcdefghij"
    observe(CallRecord("answer", "v1", "model", 5.0, error=error, text="sk-0123456789abcdefghij"))
    (span,) = exporter.get_finished_spans()
    assert not span.status.is_ok
    assert "sk-0123456789" not in span.status.description
    assert "sk-0123456789" not in str(dict(span.attributes))
