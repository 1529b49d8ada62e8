"""The HTTP service of `precise serve --rest`: reranking and pruning, with limits and metrics."""

import asyncio
import json
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from precise_rag.checks import check_number
from precise_rag.cli import rest_messages as messages
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.evidence import prune
from precise_rag.rerank import calibrated, load_reranker, rerank
from precise_rag.tokens import estimate_tokens, readable_texts
from precise_rag.types import Candidate

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

_ASK_AGAIN = 0.2
"""Seconds after which it is looked again whether the client is still there."""
_MOST_FIELDS = 100
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one request may ask, and how much is done at a time.

    max_bytes: of the body. max_documents: of one request. seconds: from its first byte to its reply.
    at_once: requests that work. max_waiting: requests that wait for them; a further one is refused.
    """

    max_bytes: int = 8 * 2**20
    max_documents: int = 1_000
    seconds: float = 30.0
    at_once: int = 2
    max_waiting: int = 64

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_documents", "at_once"):
            check_number(name.replace("_", "-"), getattr(self, name), least=1, whole=True)
        check_number("max-waiting", self.max_waiting, least=0, whole=True)
        check_number("seconds", self.seconds, above_zero=True)


class Refused(Exception):
    """A request that is not answered. status: of the reply. message: what to do."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Workers:
    """Threads that do the work of requests, as many at a time as the limits say."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.admitted = limits, 0
        self._pool = ThreadPoolExecutor(limits.at_once, thread_name_prefix="precise-rest")
        self._lock = threading.Lock()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[list[Future[Any]]]:
        """Hold a place among the requests that work or wait. Raises Refused if there is none."""
        with self._lock:
            if self.admitted >= self.limits.at_once + self.limits.max_waiting:
                raise Refused(503, "too many requests at a time; ask again later")
            self.admitted += 1
        running: list[Future[Any]] = []
        try:
            yield running
        finally:
            if running and not running[0].cancel() and not running[0].done():
                running[0].add_done_callback(lambda _: self._leave())  # the thread still works
            else:
                self._leave()

    def _leave(self) -> None:
        with self._lock:
            self.admitted -= 1

    async def run(
        self, work: Callable[[], T], request: Request, deadline: float, running: list[Future[Any]]
    ) -> T:
        """Return the result of `work`, while its client waits and the deadline has not passed."""
        running.append(self._pool.submit(work))
        result: asyncio.Future[T] = asyncio.wrap_future(running[0])
        result.add_done_callback(lambda one: one.cancelled() or one.exception())  # of one nobody waits for
        while not (await asyncio.wait([result], timeout=_ASK_AGAIN))[0]:
            if time.monotonic() > deadline:
                raise Refused(503, f"the request took longer than {self.limits.seconds:g} seconds; send less")
            if await request.is_disconnected():
                raise Refused(499, "the client has left")
        return result.result()

    def close(self) -> None:
        """Let the requests that work end, and drop those that wait."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class Metrics:
    """Counts and times, for Prometheus."""

    def __init__(self, workers: Workers) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "precise_requests", "Requests by path and status.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "precise_request_seconds", "Time to reply.", ["path"], buckets=_BUCKETS, registry=self.registry
        )
        self.documents = Counter("precise_documents", "Documents that were reranked.", registry=self.registry)
        self.tokens = Counter(
            "precise_pruned_tokens", "Estimated tokens of pruned texts.", ["which"], registry=self.registry
        )
        admitted = Gauge("precise_requests_admitted", "Requests that work or wait.", registry=self.registry)
        admitted.set_function(lambda: workers.admitted)


class Service:
    """The answers of the service.

    reranker: anything that `load_reranker` takes; it is loaded now, and asked once.
    has_token: whether clients must send a token, which is checked before the application.
    """

    def __init__(self, reranker: Any, limits: Limits, *, has_token: bool) -> None:
        self.reranker, self.limits = calibrated(load_reranker(reranker)), limits
        rerank("warm up", [_candidate(0, "The models are loaded.")], self.reranker)
        self.workers = Workers(limits)
        self.metrics = Metrics(self.workers)
        self.description = messages.openapi(has_token=has_token)

    async def rerank(self, request: Request) -> Response:
        """Order documents by how well they answer a query."""
        return await self._answer(request, messages.RerankRequest, self._rerank)

    async def prune(self, request: Request) -> Response:
        """Cut a long text down to what answers a question."""
        return await self._answer(request, messages.PruneRequest, self._prune)

    async def health(self, request: Request) -> Response:
        """Say that the models are loaded."""
        return JSONResponse({"status": "ok", "reranker": self.reranker.name})

    async def show_metrics(self, request: Request) -> Response:
        """Return counts and times."""
        return Response(generate_latest(self.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def openapi(self, request: Request) -> Response:
        """Return the description for programs."""
        return JSONResponse(self.description)

    async def docs(self, request: Request) -> Response:
        """Return the description for people."""
        return HTMLResponse(messages.page(self.description), headers={"Content-Security-Policy": _POLICY})

    async def _answer(self, request: Request, kind: type[M], work: Callable[[M], BaseModel]) -> Response:
        """The reply to one request: the result of `work`, or what is wrong."""
        began = time.monotonic()
        deadline = began + self.limits.seconds
        reply: Response
        try:
            async with self.workers.place() as running:
                data = await _body(request, self.limits, deadline)

                def answered() -> str:  # in a thread: reading and writing long JSON takes its time, too
                    return work(kind(**_object(data))).model_dump_json(exclude_none=True)

                result = await self.workers.run(answered, request, deadline, running)
            reply = Response(result, media_type="application/json")
        except Refused as error:
            reply = _problem(error.status, str(error))
        except ValidationError as error:
            reply = _problem(422, messages.mistakes(error))
        except InputError as error:
            reply = _problem(422, str(error))
        except PreciseRagError as error:
            reply = _problem(500, str(error))
        path = request.url.path
        self.metrics.requests.labels(path, reply.status_code).inc()
        self.metrics.seconds.labels(path).observe(time.monotonic() - began)
        return reply

    def _rerank(self, asked: messages.RerankRequest) -> messages.RerankResponse:
        if len(asked.documents) > self.limits.max_documents:
            raise Refused(
                413, f"at most {self.limits.max_documents:,} documents, got {len(asked.documents):,}"
            )
        query, *texts = readable_texts([asked.query, *asked.texts])
        candidates = [_candidate(place, text) for place, text in enumerate(texts)]
        ranked = rerank(query, candidates, self.reranker)
        self.metrics.documents.inc(len(texts))
        results = [
            messages.RerankResult(
                index=int(one.doc_id),
                relevance_score=round(one.score, 6),
                document={"text": one.text} if asked.return_documents else None,
            )
            for one in ranked[: asked.top_n]
        ]
        n_tokens = sum(estimate_tokens(text) for text in (query, *texts))
        return messages.RerankResponse(
            id=str(uuid.uuid4()), model=self.reranker.name, results=results, usage={"total_tokens": n_tokens}
        )

    def _prune(self, asked: messages.PruneRequest) -> messages.PruneResponse:
        text, question = readable_texts([asked.text, asked.question])
        pruned = prune(text, question, asked.max_tokens, reranker=self.reranker)
        self.metrics.tokens.labels("read").inc(pruned.n_tokens_before)
        self.metrics.tokens.labels("returned").inc(pruned.n_tokens)
        return messages.PruneResponse.of(pruned)


def make_app(
    reranker: Any = "default", limits: Limits | None = None, *, has_token: bool = False
) -> Starlette:
    """Return the service as an ASGI application. The arguments are those of `Service`."""
    service = Service(reranker, limits or Limits(), has_token=has_token)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.workers.close)

    async def failed(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 500)
        return _problem(status, f"there is no {request.method} {request.url.path}; see /docs")

    return Starlette(
        routes=[
            *(Route(f"{version}/rerank", service.rerank, methods=["POST"]) for version in ("", "/v1", "/v2")),
            Route("/prune", service.prune, methods=["POST"]),
            Route("/health", service.health),
            Route("/metrics", service.show_metrics),
            Route("/openapi.json", service.openapi),
            Route("/docs", service.docs),
        ],
        exception_handlers={HTTPException: failed},
        lifespan=lifespan,
    )


async def _body(request: Request, limits: Limits, deadline: float) -> bytes:
    """The body of a request. Raises Refused if it is too long, too late, not whole, or of another kind."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # a page of another origin cannot send it without asking first
        raise Refused(415, f"the body must be application/json, got {kind[:100] or 'no content type'}")
    too_long = Refused(413, f"the body has more than {limits.max_bytes:,} bytes; send less")
    if int(request.headers.get("content-length") or 0) > limits.max_bytes:
        raise too_long
    parts, n_bytes = [], 0
    try:
        async with asyncio.timeout(deadline - time.monotonic()):
            async for part in request.stream():
                n_bytes += len(part)
                if n_bytes > limits.max_bytes:
                    raise too_long
                parts.append(part)
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {limits.seconds:g} seconds") from None
    except ClientDisconnect:
        raise Refused(499, "the client has left") from None
    return b"".join(parts)


def _object(data: bytes) -> dict[str, Any]:
    """The JSON object in a body. Raises Refused if it is none."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused(422, "the body must be a JSON object")
    if len(body) > _MOST_FIELDS:
        raise Refused(422, f"the body must have at most {_MOST_FIELDS} fields, got {len(body):,}")
    return body


def _candidate(place: int, text: str) -> Candidate:
    """A document that is sent: without a score, since the order of a request says nothing."""
    return Candidate(str(place), 0, len(text), text, 0.0, "rank")


def _problem(status: int, message: str) -> Response:
    headers = {"Retry-After": "1"} if status == 503 else {}
    return JSONResponse({"message": message}, status, headers)
