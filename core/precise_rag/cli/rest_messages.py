"""The messages of the HTTP service, and their description as OpenAPI."""

import json
from html import escape
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError

import precise_rag
from precise_rag.evidence import Pruned


class RerankRequest(BaseModel):
    """What clients of rerank services send. Fields that are not named here are ignored."""

    model_config = ConfigDict(strict=True)

    query: str = Field(description="The question; not blank.")
    documents: Annotated[list[str | dict[str, Any]], FailFast()] = Field(  # of a million mistakes the first
        min_length=1, description='Texts, or objects with "text"; of other objects all fields are read.'
    )
    top_n: int | None = Field(default=None, ge=1, description="How many to return; default: all.")
    return_documents: bool = Field(default=False, description="Whether the texts are returned, too.")
    model: str | None = Field(default=None, description="Accepted and ignored: the server has one reranker.")

    @property
    def texts(self) -> list[str]:
        """The texts of the documents."""
        return [one if isinstance(one, str) else _text_of(one) for one in self.documents]


class RerankResult(BaseModel):
    """One document: its place among those sent, and how relevant it is, in [0, 1]."""

    index: int
    relevance_score: float
    document: dict[str, str] | None = None


class RerankResponse(BaseModel):
    """The documents, the most relevant first."""

    id: str
    model: str
    results: list[RerankResult]
    usage: dict[str, int] = Field(description="total_tokens: an estimate of what was read.")
    meta: dict[str, Any] = Field(default={"api_version": {"version": "2"}})


class PruneRequest(BaseModel):
    """A long text, and what is asked of it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    text: str = Field(description="A page, a log, JSON, … of any kind.")
    question: str = Field(description="Not blank.")
    max_tokens: int = Field(default=400, ge=32, description="Most tokens of the result, by an estimate.")


class PruneExcerpt(BaseModel):
    """A part of the text that is in the result. start, end: characters of the whole text."""

    start: int
    end: int
    score: float


class PruneResponse(BaseModel):
    """What answers. "[… 120-3400]" stands for characters that are left out. JSON stays JSON."""

    text: str
    n_tokens: int
    n_tokens_before: int
    excerpts: list[PruneExcerpt]

    @classmethod
    def of(cls, pruned: Pruned) -> "PruneResponse":
        """Return what the core pruned, as a message."""
        excerpts = [PruneExcerpt(start=e.start, end=e.end, score=round(e.score, 4)) for e in pruned.excerpts]
        return cls(
            text=pruned.text,
            n_tokens=pruned.n_tokens,
            n_tokens_before=pruned.n_tokens_before,
            excerpts=excerpts,
        )


class Problem(BaseModel):
    """What went wrong, and what to do."""

    message: str


_LONGEST_MESSAGE = 1_000
_RERANK: dict[str, Any] = {
    "query": "Who keeps the lamp?",
    "documents": ["Ilse Brandt keeps the lamp.", "Otters sleep."],
    "top_n": 1,
}
_PRUNE: dict[str, Any] = {"text": "…", "question": "Who keeps the lamp?", "max_tokens": 400}
_OPERATIONS = (
    ("/rerank", "Order documents by how well they answer a query", RerankRequest, RerankResponse, _RERANK),
    ("/prune", "Cut a long text down to what answers a question", PruneRequest, PruneResponse, _PRUNE),
)
_STATUSES = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    413: "The body, or the number of documents, is over the limit.",
    415: "The body is not application/json.",
    422: "A field is missing, or cannot be.",
    503: "Too much is asked at a time, or the request took too long; ask again after Retry-After seconds.",
}


def openapi(*, has_token: bool) -> dict[str, Any]:
    """Return the description of the service. has_token: whether clients must send one."""
    schemas: dict[str, Any] = {"Problem": _schema(Problem)}
    paths: dict[str, Any] = {}
    for path, summary, request, response, example in _OPERATIONS:
        for message in (request, response):
            schema = _schema(message)
            schemas |= schema.pop("$defs", {})
            schemas[message.__name__] = schema
        body = {"schema": _reference(request), "example": example}
        paths[path] = {
            "post": {
                "summary": summary,
                "requestBody": {"required": True, "content": {"application/json": body}},
                "responses": {
                    "200": {
                        "description": "OK",
                        "content": {"application/json": {"schema": _reference(response)}},
                    },
                    **{str(status): _failure(text) for status, text in _STATUSES.items()},
                },
            }
        }
    done = {"200": {"description": "OK"}}
    health = {"summary": "Whether the models are loaded", "responses": done, "security": []}
    paths["/health"] = {"get": health}
    paths["/metrics"] = {"get": {"summary": "Counts and times, for Prometheus", "responses": done}}
    components: dict[str, Any] = {"schemas": schemas}
    if has_token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "precise-rag", "version": precise_rag.__version__},
        "paths": paths,
        "components": components,
        **({"security": [{"token": []}]} if has_token else {}),
    }


def page(description: dict[str, Any]) -> str:
    """Return the description as a page without scripts."""
    token = " \\\n  -H 'Authorization: Bearer …'" if "security" in description else ""
    parts = [
        f"<h2>POST {path}</h2><p>{escape(summary)}.</p><pre>curl -X POST http://HOST:PORT{path}{token} \\\n"
        f"  -H 'Content-Type: application/json' -d '{escape(json.dumps(example, ensure_ascii=False))}'</pre>"
        f"<table>{_rows(request)}</table><p>Returns <code>{response.__name__}</code>:</p>"
        f"<table>{_rows(response)}</table>"
        for path, summary, request, response, example in _OPERATIONS
    ]
    statuses = "".join(f"<tr><td>{status}<td>{escape(text)}" for status, text in _STATUSES.items())
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>precise-rag</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><style>'
        ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:auto;"
        "padding:1rem}pre{overflow-x:auto;padding:.5rem;background:#8882}"
        "td{padding:.2rem 1rem .2rem 0;vertical-align:top}</style><h1>precise-rag</h1>"
        "<p><code>/v1/rerank</code> and <code>/v2/rerank</code>"
        " are the same as <code>/rerank</code>. <code>GET /health</code>, <code>GET /metrics</code>, "
        '<a href="openapi.json">openapi.json</a>.</p>'
        f"{''.join(parts)}<h2>Errors</h2><table>{statuses}</table></html>"
    )


def _rows(message: type[BaseModel]) -> str:
    return "".join(
        f"<tr><td><code>{name}</code><td>{'required' if field.is_required() else 'optional'}"
        f"<td>{escape(field.description or '')}"
        for name, field in message.model_fields.items()
    )


def _text_of(document: dict[str, Any]) -> str:
    """The text of a document that is an object; without a text, its fields, one a line."""
    text = document.get("text")
    if isinstance(text, str):
        return text
    return "\n".join(f"{name}: {value}" for name, value in document.items())


def _schema(message: type[BaseModel]) -> dict[str, Any]:
    return message.model_json_schema(ref_template="#/components/schemas/{model}")


def _reference(message: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{message.__name__}"}


def _failure(text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": _reference(Problem)}}}


def mistakes(error: ValidationError) -> str:
    """Return what is wrong with a request, in one line."""
    said = [f"{'.'.join(map(str, one['loc'])) or 'the body'}: {one['msg']}" for one in error.errors()[:5]]
    return "; ".join(said)[:_LONGEST_MESSAGE]
