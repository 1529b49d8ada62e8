"""OpenTelemetry spans, kept in memory."""

import re
from typing import Any

import pytest


def exporter_and_provider() -> tuple[Any, Any]:
    """A provider of tracers, and where their spans are kept."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exporter, provider = memory.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    return exporter, provider


def of_kind(exporter: Any, kind: str) -> list[Any]:
    """The finished spans of a kind of OpenInference, in the order in which they ended."""
    return [
        span
        for span in exporter.get_finished_spans()
        if span.attributes.get("openinference.span.kind") == kind
    ]


def documents_of(span: Any, prefix: str = "retrieval.documents") -> list[dict[str, Any]]:
    """The documents in the attributes of a span, in order."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in span.attributes.items():
        if named := re.fullmatch(rf"{re.escape(prefix)}\.(\d+)\.document\.(\w+)", key):
            found.setdefault(int(named[1]), {})[named[2]] = value
    return [found[number] for number in sorted(found)]
