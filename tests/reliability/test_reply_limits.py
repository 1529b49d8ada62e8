"""Replies that are too long, compressed or no numbers: each is one error, and costs no answer."""

import gzip
import math
from collections.abc import Sequence
from typing import Any

import pytest

from precise_rag.candidate_filters.relevance_parsing import parse_score
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import (
    LLMResponseError,
    ModelError,
    PreciseRagError,
)
from precise_rag.feedback import parse_judgement
from precise_rag.limited_http import MAX_REPLY_BYTES
from precise_rag.llm import Budget, OpenAIChat
from precise_rag.prompts import cited_numbers
from precise_rag.rerank import CohereReranker
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Price, PriceTable, Trace
from precise_rag.types import Completion, Message
from support.chat_server import ChatServer, Reply, says
from support.feedback import answering
from support.misbehaving import ACCEPTED, CANDIDATES, PROMPT, QUESTION, client


def bomb(n_bytes: int) -> Reply:
    return Reply(gzip.compress(b" " * n_bytes), headers={"Content-Encoding": "gzip"})


BAD_BODIES = {
    "gzip bomb": (bomb(64 * 2**20), "is compressed, which was not asked for"),
    "10 MB": (Reply(b" " * 10 * 2**20), "longer than 8,388,608 bytes"),
    "an error of 10 MB": (Reply(b" " * 10 * 2**20, status=500), "longer than 8,388,608 bytes"),
    "endless": (Reply(endless=0.0), "longer than 8,388,608 bytes"),
    "other compression": (Reply(b"{}", headers={"Content-Encoding": "br"}), "is compressed"),
    "deep": (Reply("[" * 100_000), "not a completion"),
    "long number": (Reply('{"created": ' + "9" * 5_000 + "}"), "not a completion"),
    "choices are a text": (Reply({"choices": "abc"}), "has no completion"),
    "a number as text": (says(7), "must be a string"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_reply_over_a_limit_is_one_error(name: str) -> None:
    reply, said = BAD_BODIES[name]
    with client([reply]) as llm, pytest.raises(LLMResponseError, match=said):
        llm.complete(PROMPT)


@pytest.mark.parametrize("name", ["gzip bomb", "10 MB", "deep"])
async def test_the_asynchronous_client_has_the_same_limits(name: str) -> None:
    reply, said = BAD_BODIES[name]
    with client([reply]) as llm:
        with pytest.raises(LLMResponseError, match=said):
            await llm.acomplete(PROMPT)
        await llm.aclose()


def test_no_compression_is_asked_for() -> None:
    with ChatServer([says("Ada.")]) as server:
        llm = OpenAIChat("m", base_url=server.url)
        llm.complete(PROMPT)
        llm.close()
        assert server.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize("name", ["gzip bomb", "10 MB", "deep", "long number", "choices are a text"])
def test_embeddings_and_scores_have_limits_too(name: str) -> None:
    reply, _ = BAD_BODIES[name]
    with ChatServer([reply]) as server:
        encoder = OpenAIEncoder("e", base_url=server.url, api_key="key", max_retries=0)
        with pytest.raises(ModelError, match="openai:e returned no embeddings"):
            encoder.encode(["text"])
        url = server.url.removesuffix("/v1")
        with (
            CohereReranker(api_key="key", base_url=url, max_retries=0) as cohere,
            pytest.raises(LLMResponseError, match="cohere:"),
        ):
            cohere.score(QUESTION, CANDIDATES)


@pytest.mark.parametrize("vector", [["x"], [1e300], [None], "abc", {"a": 1}, [[1.0]], 10**400])
def test_embeddings_that_are_no_vectors_are_one_error(vector: Any) -> None:
    body = {"object": "list", "model": "e", "data": [{"index": 0, "embedding": vector}]}
    with ChatServer([Reply(body)]) as server:
        encoder = OpenAIEncoder("e", base_url=server.url, api_key="key", max_retries=0)
        with pytest.raises(ModelError, match="openai:e"):
            encoder.encode(["text"])


@pytest.mark.parametrize("score", ["high", None, 7.0, -1, {"a": 1}])
def test_scores_that_are_no_probabilities_are_one_error(score: Any) -> None:
    body = {"id": "r", "results": [{"index": 0, "relevance_score": score}], "meta": {}}
    with ChatServer([Reply(body)]) as server:
        url = server.url.removesuffix("/v1")
        with (
            CohereReranker(api_key="key", base_url=url, max_retries=0) as cohere,
            pytest.raises(LLMResponseError, match="cohere:"),
        ):
            cohere.score(QUESTION, CANDIDATES[:1])


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_reply_of_any_model_is_no_answer(text: str) -> None:
    """If a later round has none, the earlier draft is the answer."""
    empty = Completion(text, "m", 1, 1)
    with pytest.raises(LLMResponseError, match="the completion is empty"):
        answering(ScriptedLLM([empty])).answer(QUESTION, candidates=CANDIDATES)
    again = '{"reason": "so", "score": 4, "adjustment": 1}'
    answer = answering(ScriptedLLM(["Ada.", again, empty]), k=2).answer(QUESTION, candidates=CANDIDATES)
    assert answer.text == "Ada."
    assert "round 2 has no draft" in answer.note


def test_an_empty_reply_that_was_paid_for_counts() -> None:
    trace = Trace(QUESTION)
    with pytest.raises(LLMResponseError):
        answering(ScriptedLLM([Completion("", "m", 70, 5)])).answer(
            QUESTION, candidates=CANDIDATES, trace=trace
        )
    assert [(call.input_tokens, call.output_tokens) for call in trace.calls] == [(70, 5)]


def test_a_stream_has_a_limit_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("precise_rag.llm.openai._MOST_EVENTS", 50)
    with client([says("word " * 100)]) as llm, pytest.raises(LLMResponseError, match="more than 50 events"):
        list(llm.stream(PROMPT))


def test_a_lone_surrogate_in_a_question_or_document_does_not_cost_the_call() -> None:
    with ChatServer([says("Ada.")]) as server:
        llm = OpenAIChat("m", base_url=server.url, max_retries=0)
        assert llm.complete([Message("user", "Who\ud800?")]).text == "Ada."
        llm.close()
    assert server.requests[0]["messages"][0]["content"] == "Who\ufffd?"


class Usage:
    """A model whose reply is fine but for its usage."""

    name = "usage"

    def __init__(self, usage: Any) -> None:
        self.usage = usage

    def complete(self, messages: Sequence[Message], *, schema: Any = None) -> Completion:
        text = ACCEPTED if schema else "Ada."
        return Completion(text, "usage", self.usage, self.usage)

    async def acomplete(self, messages: Sequence[Message], *, schema: Any = None) -> Completion:
        return self.complete(messages, schema=schema)


@pytest.mark.parametrize("usage", [None, "12", math.nan, math.inf, -5, 10**400, True, 1.5, [1]])
def test_a_usage_that_is_no_number_is_estimated_and_costs_no_answer(usage: Any) -> None:
    prices = PriceTable({"usage": Price(1.0, 1.0)})
    answer = answering(Usage(usage), prices=prices, budget=Budget(cost=1.0)).answer(
        QUESTION, candidates=CANDIDATES
    )
    assert answer.text == "Ada."
    assert answer.trace is not None
    assert all(call.usage_estimated and call.input_tokens > 0 for call in answer.trace.calls)
    body = says("Ada.").body
    assert isinstance(body, dict)
    reported = usage if isinstance(usage, str | int | float | list) else 0
    with client([Reply({**body, "usage": {"prompt_tokens": reported, "completion_tokens": 1}})]) as llm:
        assert llm.complete(PROMPT).text == "Ada."
    with client([Reply({**body, "usage": "none"})]) as llm:
        assert llm.complete(PROMPT).usage_estimated


@pytest.mark.parametrize("digits", [400, 5_000, 100_000])
def test_long_numbers_in_replies_are_read_as_none(digits: int) -> None:
    number = "1" + "0" * digits
    for reply in (f'{{"score": {number}}}', f'{{"score": "{number}"}}', f"Evaluation Score: {number}"):
        assert parse_judgement(reply).status == "unparsed"
        assert parse_score(reply) is None
    assert cited_numbers(f"Ada [{number}].") == []


def test_no_reply_is_larger_than_its_limit_says() -> None:
    assert MAX_REPLY_BYTES == 8 * 2**20
    assert issubclass(LLMResponseError, PreciseRagError)
