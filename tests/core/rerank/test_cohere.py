from contextlib import closing
from typing import Any

import pytest

from precise_rag.errors import LLMAuthenticationError, LLMError, LLMRateLimitError, LLMResponseError
from precise_rag.rerank import CohereReranker, rerank
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


def test_scores_are_assigned_by_the_index_of_each_result_in_several_requests() -> None:
    with ChatServer(by_length) as server, closing(reranker(server)) as cohere:
        ranked = rerank("a question", CANDIDATES, cohere)
    assert [c.text for c in ranked] == ["xxxxx", "xxxx", "xxx", "xx", "x"]
    assert [c.score for c in ranked] == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1])
    assert ranked[0].score_scale == "probability"
    request = server.requests[0]
    assert (request["model"], request["query"], len(request["documents"])) == ("rerank-v3.5", "a question", 5)
    assert server.headers[0]["authorization"] == "Bearer key"
    with ChatServer(by_length) as server, closing(reranker(server, model=ENGLISH, batch_size=2)) as cohere:
        scores = cohere.score("q", CANDIDATES)
    assert scores == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert [len(request["documents"]) for request in server.requests] == [2, 2, 1]
    assert server.requests[0]["model"] == ENGLISH


def refuses(status: int) -> Reply:
    return Reply({"message": "no"}, status, {"retry-after-ms": "1"})


def scores_only(index: int) -> Reply:
    return Reply({"id": "r", "results": [{"index": index, "relevance_score": 0.5}], "meta": {}})


@pytest.mark.parametrize(
    ("reply", "n_requests", "error", "said"),
    [
        (refuses(429), 3, LLMRateLimitError, "http.* answers 429, too many requests"),
        (refuses(401), 1, LLMAuthenticationError, "http.* refused the key .401.; check .* or CO_API_KEY"),
        (refuses(400), 1, LLMError, "http.* refused the request with 400 .no.$"),
        (scores_only(9), 1, LLMResponseError, "scored document 9 of 5"),
        (scores_only(0), 1, LLMResponseError, "left 4 of 5 documents without a score"),
    ],
)
def test_errors_name_the_cause(reply: Reply, n_requests: int, error: type[LLMError], said: str) -> None:
    with (
        ChatServer([reply]) as server,
        closing(reranker(server)) as cohere,
        pytest.raises(error, match=f"cohere:rerank-v3.5:? {said}"),
    ):
        cohere.score("q", CANDIDATES)
    assert len(server.requests) == n_requests


def test_a_missing_key_is_named_when_there_is_something_to_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CO_API_KEY", raising=False)
    with closing(CohereReranker()) as cohere:
        assert len(cohere.score("q", [])) == 0
        with pytest.raises(LLMAuthenticationError, match="set CO_API_KEY"):
            cohere.score("q", CANDIDATES)
