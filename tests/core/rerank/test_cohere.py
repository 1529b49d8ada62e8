from typing import Any

import pytest

from precise_rag.errors import (
    LLMAuthenticationError,
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    LLMResponseError,
    LLMServerError,
)
from precise_rag.rerank import CohereReranker, load_reranker, rerank
from precise_rag.types import Candidate
from support.chat_server import ChatServer, Reply

pytest.importorskip("cohere")

ENGLISH = "rerank-english-v3.0"
CANDIDATES = [Candidate("d", i, i + 1, "x" * (i + 1), 0.0, "rank") for i in range(5)]


def by_length(request: dict[str, Any]) -> Reply:
    """Scores a tenth of each document's length, best first as the service sorts them."""
    scored = sorted(((len(text) / 10, i) for i, text in enumerate(request["documents"])), reverse=True)
    results = [{"index": i, "relevance_score": score} for score, i in scored]
    return Reply({"id": "r", "results": results, "meta": {}})


def reranker(server: ChatServer, **options: Any) -> CohereReranker:
    url = server.url.removesuffix("/v1")
    return CohereReranker(api_key="key", base_url=url, **{"timeout": 5.0, "max_retries": 2, **options})


def test_scores_are_assigned_by_the_index_of_each_result() -> None:
    with ChatServer(by_length) as server, reranker(server) as cohere:
        ranked = rerank("a question", CANDIDATES, cohere)
    assert [c.text for c in ranked] == ["xxxxx", "xxxx", "xxx", "xx", "x"]
    assert [c.score for c in ranked] == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1])
    assert ranked[0].score_scale == "probability"
    request = server.requests[0]
    assert (request["model"], request["query"], len(request["documents"])) == ("rerank-v3.5", "a question", 5)
    assert server.headers[0]["authorization"] == "Bearer key"


def test_more_documents_than_the_batch_size_take_several_requests() -> None:
    with ChatServer(by_length) as server, reranker(server, model=ENGLISH, batch_size=2) as cohere:
        scores = cohere.score("q", CANDIDATES)
    assert scores == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert [len(request["documents"]) for request in server.requests] == [2, 2, 1]
    assert server.requests[0]["model"] == ENGLISH


@pytest.mark.parametrize("status", [429, 503])
def test_requests_to_a_busy_server_are_repeated_by_the_client_alone(status: int) -> None:
    busy = Reply({"message": "busy"}, status, {"retry-after-ms": "1"})
    replies = iter([busy, busy])
    with (
        ChatServer(lambda request: next(replies, None) or by_length(request)) as server,
        reranker(server) as cohere,
    ):
        assert cohere.score("q", CANDIDATES)[0] == pytest.approx(0.1)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (429, LLMRateLimitError, "still answers 429 after 2 retries"),
        (500, LLMServerError, "still answers 500 after 2 retries"),
        (401, LLMAuthenticationError, "refused the key; check api_key or CO_API_KEY"),
        (400, LLMError, "refused the request with 400"),
    ],
)
def test_errors_name_the_cause(status: int, error: type[LLMError], said: str) -> None:
    with (
        ChatServer([Reply({"message": "no"}, status, {"retry-after-ms": "1"})]) as server,
        reranker(server) as cohere,
        pytest.raises(error, match=f"cohere:rerank-v3.5 {said}"),
    ):
        cohere.score("q", CANDIDATES)
    assert len(server.requests) == (3 if status in (429, 500) else 1)


@pytest.mark.parametrize(
    ("index", "said"), [(9, "scored document 9 of 5"), (0, "left 4 of 5 documents without a score")]
)
def test_results_for_other_documents_are_refused(index: int, said: str) -> None:
    body = {"id": "r", "results": [{"index": index, "relevance_score": 0.5}], "meta": {}}
    with (
        ChatServer([Reply(body)]) as server,
        reranker(server) as cohere,
        pytest.raises(LLMResponseError, match=said),
    ):
        cohere.score("q", CANDIDATES)


def test_no_answer_within_the_timeout_is_a_connection_error() -> None:
    with (
        ChatServer([Reply({}, stall=30.0)]) as server,
        reranker(server, timeout=0.05, max_retries=0) as cohere,
        pytest.raises(LLMConnectionError, match="no answer in"),
    ):
        cohere.score("q", CANDIDATES)


def test_a_missing_server_is_a_connection_error() -> None:
    with ChatServer(by_length) as server:
        pass
    with (
        reranker(server, max_retries=0) as gone,
        pytest.raises(LLMConnectionError, match="cannot be reached"),
    ):
        gone.score("q", CANDIDATES)


def test_an_empty_list_needs_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CO_API_KEY", raising=False)
    assert len(load_reranker("cohere").score("q", [])) == 0


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CO_API_KEY", raising=False)
    with (
        CohereReranker() as cohere,
        pytest.raises(LLMAuthenticationError, match="check api_key or CO_API_KEY"),
    ):
        cohere.score("q", CANDIDATES)
