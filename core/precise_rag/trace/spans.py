"""The records of a trace as OpenTelemetry spans, with the names that viewers of retrieval read."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from precise_rag._extras import require
from precise_rag.trace.plain import plain
from precise_rag.trace.record import CallRecord, Record, RoundRecord, StageRecord
from precise_rag.types import Candidate

_MOST_DOCUMENTS = 50
_KINDS = {"search": "RETRIEVER", "retrieve": "RETRIEVER", "rerank": "RERANKER"}
_LISTS = {"RETRIEVER": "retrieval.documents", "RERANKER": "reranker.output_documents"}


def span_observer(
    question: str, tracer: Any = None, *, include_text: bool = True
) -> Callable[[Record], None]:
    """Return an observer for a `Trace` that ends one OpenTelemetry span for each record.

    The spans are children of the one that is current now. Stages have the kind RETRIEVER, RERANKER or CHAIN
    of OpenInference's conventions, calls of models LLM. Names and tokens also follow OpenTelemetry's
    conventions for generative AI. The documents of a stage are those that it kept, at most 50, each with its
    id, score and text. Keys and passwords are removed.

    question: what is asked.
    tracer: of OpenTelemetry; default: that of the global provider.
    include_text: whether questions, documents, prompts and replies are in the spans.
    """
    trace = require("opentelemetry.trace", extra="otel")
    context = require("opentelemetry.context", extra="otel").get_current()
    own = tracer or trace.get_tracer("precise_rag")

    def observe(record: Record) -> None:
        ended = time.time_ns()
        name, ms, attributes = _described(record, question, include_text)
        started = ended - round(ms * 1e6)
        span = own.start_span(name, context=context, start_time=started, attributes=plain(attributes))
        if isinstance(record, CallRecord) and record.error:
            said = plain(record.error) if include_text else ""
            span.set_status(trace.Status(trace.StatusCode.ERROR, said))
        span.end(end_time=ended)

    return observe


def _described(record: Record, question: str, include_text: bool) -> tuple[str, float, dict[str, Any]]:
    """The name, the milliseconds and the attributes of the span of a record."""
    match record:
        case StageRecord():
            return record.name, record.ms, _of_stage(record, question, include_text)
        case CallRecord():
            return f"chat {record.model}", record.ms, _of_call(record, include_text)
        case RoundRecord():
            judged = record.judgement
            facts = {"precise.round": record.number, "precise.kept": list(record.kept)}
            score = {"precise.score": judged.score} if judged and judged.score is not None else {}
            return "judgement", 0.0, {"openinference.span.kind": "EVALUATOR", **facts, **score}


def _of_stage(record: StageRecord, question: str, include_text: bool) -> dict[str, Any]:
    kind = _KINDS.get(record.name, "CHAIN")
    attributes: dict[str, Any] = {"openinference.span.kind": kind, "precise.stage": record.name}
    if include_text:
        attributes["input.value"] = question
    if kind == "RETRIEVER":
        attributes["gen_ai.operation.name"] = "retrieval"
        attributes |= {"gen_ai.retrieval.query.text": question} if include_text else {}
    if kind == "RERANKER":
        attributes |= {"reranker.query": question} if include_text else {}
        attributes["reranker.model_name"] = str(record.settings.get("reranker", ""))
    prefix = _LISTS.get(kind, "retrieval.documents")
    for number, candidate in enumerate(record.selection.kept[:_MOST_DOCUMENTS]):
        named = _of_document(candidate, include_text)
        attributes |= {f"{prefix}.{number}.document.{name}": value for name, value in named.items()}
    return attributes


def _of_document(candidate: Candidate, include_text: bool) -> Mapping[str, Any]:
    place = {"doc_id": candidate.doc_id, "start": candidate.start, "end": candidate.end}
    attributes = {"id": candidate.id, "score": candidate.score, "metadata": json.dumps(place)}
    return {**attributes, "content": candidate.text} if include_text else attributes


def _of_call(record: CallRecord, include_text: bool) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": record.requested_model or record.model,
        "gen_ai.response.model": record.model,
        "gen_ai.usage.input_tokens": record.input_tokens,
        "gen_ai.usage.output_tokens": record.output_tokens,
        "llm.model_name": record.model,
        "llm.token_count.prompt": record.input_tokens,
        "llm.token_count.completion": record.output_tokens,
        "llm.token_count.total": record.input_tokens + record.output_tokens,
        "precise.role": record.role,
    }
    if include_text:
        attributes["output.value"] = record.text
        for number, message in enumerate(record.messages):
            attributes[f"llm.input_messages.{number}.message.role"] = message.role
            attributes[f"llm.input_messages.{number}.message.content"] = message.content
    return attributes
