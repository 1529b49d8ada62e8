"""The client against a local server that fails as each test says."""

import asyncio
import gc
import json
from contextlib import aclosing
from functools import partial

import openai
import pytest

from precise_rag.errors import (
    LLMAuthenticationError,
    LLMConnectionError,
    LLMError,
    LLMResponseError,
    LLMServerError,
)
from precise_rag.failures import OptionalFeature
from precise_rag.llm import OpenAIChat
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.types import Completion, Message
from support.chat_server import ChatServer, fails, says, wait_until
from support.misbehaving import client

PROMPT = (Message("system", "Be brief."), Message("user", "Where is Paris?"))
SCHEMA = {"title": "place", "type": "object", "properties": {"where": {"type": "string"}}}


def test_a_completion_carries_the_servers_usage():
    in_parts = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "France"}]
    with client([says("France"), says(in_parts)], api_key="k1\n", temperature=0) as (llm, server):
        assert [llm.complete(PROMPT) for _ in "12"] == [Completion("France", "local-model", 11, 7)] * 2
    messages = [message._asdict() for message in PROMPT]
    assert server.requests == [{"model": "m", "temperature": 0, "messages": messages}] * 2
    assert server.headers[0]["authorization"] == "Bearer k1"


def test_structured_output_is_asked_for_and_dropped_where_refused():
    def script(request):
        if "response_format" in request:
            return fails(400, "response_format is not supported")
        return says("{}")

    with client([says("{}")]) as (llm, server):
        llm.complete(PROMPT, schema=SCHEMA)
    assert server.requests[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "place", "schema": SCHEMA, "strict": True},
    }
    with client(script) as (llm, server):
        assert [llm.complete(PROMPT, schema=SCHEMA).text for _ in range(2)] == ["{}", "{}"]
    assert ["response_format" in request for request in server.requests] == [True, False, False]
    with client([fails(400, "bad"), fails(400, "bad"), says("{}")]) as (llm, server):
        with pytest.raises(LLMError, match="refused the request with 400"):
            llm.complete(PROMPT, schema=SCHEMA)
        llm.complete(PROMPT, schema=SCHEMA)
    assert "response_format" in server.requests[-1]  # the schema was not why


def test_replies_that_cannot_be_read_at_the_same_time_are_no_refusal():
    feature, unreadable = OptionalFeature("m"), partial(json.loads, "{")
    feature.ask(unreadable, lambda: feature.ask(unreadable, lambda: "plain"))
    assert [feature.ask(lambda: "structured", lambda: "plain") for _ in range(2)] == ["structured"] * 2


def test_a_server_that_is_down_and_a_missing_key_are_named(monkeypatch):
    with ChatServer([]) as server:
        url = server.url
    llm = OpenAIChat("m", base_url=url, max_retries=0)
    with pytest.raises(LLMConnectionError, match=url):
        llm.complete(PROMPT)
    llm.close()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(LLMAuthenticationError, match="set OPENAI_API_KEY"):
        OpenAIChat("m").complete(PROMPT)


def test_retries_wait_as_the_server_asks_and_there_is_one_layer_of_them():
    script = [fails(429, retry_after_ms="30"), fails(500, retry_after_ms="10"), says("France")]
    with client(script, max_retries=2) as (llm, server):
        assert llm.complete(PROMPT).text == "France"
        assert len(server.requests) == 3
    with client([fails(500, retry_after_ms="5")], max_retries=2) as (llm, server):
        with pytest.raises(LLMServerError):
            llm.complete(PROMPT)
        assert len(server.requests) == 3


def test_a_stream_gives_pieces_and_then_the_completion_also_without_stream_options():
    with client([says("It is in France.")]) as (llm, _):
        *pieces, completion = llm.stream(PROMPT)
    assert pieces == ["It ", "is ", "in ", "France."]
    assert completion == Completion("It is in France.", "local-model", 11, 7)

    def script(request):
        return fails(400, "unknown field") if "stream_options" in request else says("in France")

    with client(script) as (llm, _):
        assert [item for item in llm.stream(PROMPT) if isinstance(item, str)] == ["in ", "France"]


async def test_an_asynchronous_stream_gives_the_same_with_an_estimated_usage_without_the_servers():
    with client([says("It is in France.", usage=None)]) as (llm, _):
        *pieces, completion = [item async for item in llm.astream(PROMPT)]
        await llm.aclose()
    assert "".join(pieces) == completion.text == "It is in France."
    assert completion.usage_estimated
    assert (completion.input_tokens, completion.output_tokens) == (estimate_prompt_tokens(PROMPT), 5)


def test_a_stream_that_stalls_or_breaks_off_is_an_error():
    with client([says("one two three four", stall=5.0)], timeout=0.5) as (llm, _):
        stream = llm.stream(PROMPT)
        assert [next(stream), next(stream)] == ["one ", "two "]
        with pytest.raises(LLMConnectionError, match="did not answer in time"):
            next(stream)
    with client([says("one two three four", cut=True)]) as (llm, _), pytest.raises(LLMConnectionError):
        list(llm.stream(PROMPT))
    with client([says("")]) as (llm, _), pytest.raises(LLMResponseError, match="empty"):
        list(llm.stream(PROMPT))


async def test_cancelling_and_leaving_a_stream_early_leave_no_request_open():
    with client([says("late", stall=30.0)], timeout=60) as (llm, server):
        task = asyncio.create_task(llm.acomplete(PROMPT))
        assert await asyncio.to_thread(wait_until, lambda: server.open_requests == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await llm.aclose()
    with client([says("word " * 2000)]) as (llm, server):
        async with aclosing(llm.astream(PROMPT)) as items:
            async for _ in items:
                break
        assert await asyncio.to_thread(wait_until, lambda: server.open_requests == 0)
        await llm.aclose()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_client_serves_several_event_loops_and_lets_go_those_that_ended():
    with client([says("France")]) as (llm, _):
        for _ in range(3):
            assert asyncio.run(llm.acomplete(PROMPT)).text == "France"
        gc.collect()
        assert sum(type(found) is openai.AsyncOpenAI for found in gc.get_objects()) == 1
    del llm
    gc.collect()
