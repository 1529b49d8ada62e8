"""Whatever a server or model replies, or how late, is one clear error, and costs no answer that is there."""

import asyncio
import json
import math
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from precise_rag.candidate_filters import RelevanceFilter
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import (
    BudgetExceeded,
    ContentFilterError,
    ContextLengthError,
    EmptyReplyError,
    LLMAuthenticationError,
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    LLMResponseError,
    LLMServerError,
    ModelError,
)
from precise_rag.feedback import FeedbackController
from precise_rag.llm import Budget, OpenAIChat, load_llm
from precise_rag.llm.usage import cut_off, reported_cut_off
from precise_rag.rerank import CohereReranker
from precise_rag.rewriting import QueryRewriter
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Price, PriceTable, Trace
from precise_rag.types import Candidate, Completion, Message
from support.chat_server import ChatServer, Reply, fails, says, wait_until
from support.feedback import answering
from support.misbehaving import (
    ACCEPTED,
    CANDIDATES,
    MANY,
    PROMPT,
    QUESTION,
    client,
    completed,
    drained,
    scores,
)

FAULTS: dict[str, tuple[Reply, type[LLMError], str]] = {
    "a refused key": (fails(401, "bad key"), LLMAuthenticationError, "check api_key or OPENAI_API_KEY"),
    "a forbidden key": (fails(403, "not yours"), LLMAuthenticationError, "403"),
    "a rate limit": (fails(429, "slow down", retry_after="7"), LLMRateLimitError, "wait 7 s, as it asks"),
    "a server error": (fails(500, "oops"), LLMServerError, "500"),
    "no such model": (fails(404, "no such model"), LLMError, "no such model"),
    "a page": (Reply("<html>a</html>", headers={"Content-Type": "text/html"}), LLMResponseError, "has no"),
    "no JSON": (Reply('{"choices": [{"mess'), LLMResponseError, "not a valid reply"),
    "deep JSON": (Reply("[" * 100_000), LLMResponseError, "not a valid reply"),
    "a long number": (Reply('{"created": ' + "9" * 5_000 + "}"), LLMResponseError, "not a valid reply"),
    "no choices": (Reply({"choices": []}), LLMResponseError, "has no completion"),
    "another object": (Reply({"unrelated": 1}), LLMResponseError, "has no completion"),
    "a number as text": (says(7), LLMResponseError, "must be a string"),  # type: ignore[arg-type]
    "a blank text": (says("  \n"), EmptyReplyError, "empty"),
    "a reply without an end": (Reply(endless=0.0), LLMResponseError, r"larger than 67,108,864 bytes"),
    "a bomb": (Reply("x", headers={"Content-Encoding": "gzip, gzip"}), LLMResponseError, "is packed as"),
    "an end before the body": (Reply("{}", cut=True), LLMConnectionError, "broke off its answer"),
    "no reply in time": (says("late", stall=30.0), LLMConnectionError, "did not answer in time"),
}
PROMPT_FAULTS: dict[str, tuple[Reply, type[LLMError], str]] = {
    "too long": (fails(400, "too much", code="context_length_exceeded"), ContextLengthError, "longer than"),
    "too long, in words": (fails(400, "exceeds the available context size"), ContextLengthError, "size"),
    "filtered": (fails(400, "filtered", code="content_filter"), ContentFilterError, "refused the prompt"),
    "flagged": (fails(400, "Your input was flagged by moderation"), ContentFilterError, "flagged"),
    "a filtered reply": (says("", finish_reason="content_filter"), ContentFilterError, "left no text"),
}


@pytest.mark.parametrize("name", [*FAULTS, *PROMPT_FAULTS])
def test_a_chat_model_an_encoder_and_a_reranker_say_what_is_wrong(name: str) -> None:
    reply, error, said = (FAULTS | PROMPT_FAULTS)[name]
    timeout = 0.5 if reply.stall else 10.0
    options: dict[str, Any] = {"api_key": "key", "timeout": timeout, "max_retries": 0}

    with client([reply], timeout=timeout) as (llm, _):
        for call in (lambda: llm.complete(PROMPT), lambda: asyncio.run(completed(llm))):
            with pytest.raises(error, match=said) as raised:
                call()
            assert type(raised.value) is error
            assert str(raised.value).startswith("m: ")
        if not isinstance(reply.body, dict) or reply.status != 200:
            with pytest.raises(LLMError, match=r"^m: "):
                list(llm.stream(PROMPT))
        if name in PROMPT_FAULTS:
            return
        with pytest.raises(ModelError, match="openai:e returned no embeddings"):
            OpenAIEncoder("e", base_url=llm.base_url, **options).encode(["text"])
        with closing(CohereReranker(base_url=str(llm.base_url).removesuffix("/v1"), **options)) as cohere:
            expected = error if reply.status != 200 or reply.cut or reply.stall else LLMResponseError
            with pytest.raises(expected, match="cohere:"):
                cohere.score(QUESTION, CANDIDATES)


QUOTA = {"message": "quota"}
BROKEN = {"index": 0, "message": {"content": ""}, "finish_reason": "error", "error": QUOTA}
REASONS = [{"error": QUOTA}, {"error": "quota"}, {"detail": "quota"}, QUOTA, {"choices": [BROKEN]}]


@pytest.mark.parametrize("body", REASONS)
def test_why_an_answer_is_none_is_told(body: dict[str, Any]) -> None:
    options: dict[str, Any] = {"api_key": "key", "max_retries": 0}
    with client([Reply(body), Reply(f"data: {json.dumps(body)}\n\n"), Reply(body)]) as (llm, server):
        cohere = CohereReranker(base_url=server.url.removesuffix("/v1"), **options)
        with pytest.raises(LLMResponseError, match=r"has no completion \(quota\)$"):
            llm.complete(PROMPT)
        with pytest.raises(LLMError, match=r"quota\)?$"):
            list(llm.stream(PROMPT))
        with pytest.raises(ModelError, match="quota"):
            OpenAIEncoder("e", base_url=server.url, **options).encode(["text"])
        with closing(cohere), pytest.raises(LLMResponseError, match="quota"):
            cohere.score(QUESTION, CANDIDATES)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_client_follows_a_redirect_with_the_prompt(status: int) -> None:
    with ChatServer([says("Ada.")]) as other, ChatServer(lambda _: redirect) as server:
        options: dict[str, Any] = {"api_key": "sk-12345678", "max_retries": 2}
        llm = OpenAIChat("m", base_url=server.url, **options)
        encoder = OpenAIEncoder("e", base_url=server.url, **options)
        host = other.url.removesuffix("/v1")
        with closing(CohereReranker(base_url=server.url.removesuffix("/v1"), **options)) as cohere:
            for path, named, call in (
                ("/v1/chat/completions", other.url, lambda: llm.complete(PROMPT)),
                ("/v1/chat/completions", other.url, lambda: llm.complete(PROMPT, schema={"title": "a"})),
                ("/v1/chat/completions", other.url, lambda: list(llm.stream(PROMPT))),
                ("/v1/chat/completions", other.url, lambda: asyncio.run(completed(llm))),
                ("/v1/embeddings", other.url, lambda: encoder.encode(["text"])),
                ("/v2/rerank", host, lambda: cohere.score(QUESTION, CANDIDATES)),
            ):
                target = f"{host}{path}".replace("//", "//user:pass@")
                redirect = Reply(status=status, headers={"Location": f"{target}?key=sk-12345678&k=abc#d"})
                with pytest.raises((LLMConnectionError, ModelError)) as raised:
                    call()
                said = str(raised.value)
                assert f"{server.url.removesuffix('/v1')}" in said
                told = f"answered {status} and points to {named}, where nothing was sent; set base_url"
                assert told in said
                assert not any(secret in said for secret in ("sk-", "abc", "pass", "?", "#"))
        llm.close()
        assert len(server.requests) == 6
        assert other.requests == []


@pytest.mark.parametrize("location", [None, "", "http://[x", "/v1/chat/completions", "\x7f http://a\tb"])
def test_a_redirect_to_nowhere_is_the_same_error(location: str | None) -> None:
    reply = Reply(status=302, headers={} if location is None else {"Location": location})
    with client([reply]) as (llm, _), pytest.raises(LLMConnectionError, match="302 and points to"):
        llm.complete(PROMPT)


@pytest.mark.parametrize("number", ["high", None, 1e300, -1e300, {"a": 1}, [1.0], 10**400])
def test_what_is_neither_a_vector_nor_a_probability_is_one_error(number: Any) -> None:
    vectors = {"object": "list", "model": "e", "data": [{"index": 0, "embedding": [number]}]}
    scored = {"id": "r", "results": [{"index": 0, "relevance_score": number}], "meta": {}}
    with ChatServer([Reply(vectors), Reply(scored)]) as server:
        encoder = OpenAIEncoder("e", base_url=server.url, api_key="key", max_retries=0)
        with pytest.raises(ModelError, match="openai:e"):
            encoder.encode(["text"])
        url = server.url.removesuffix("/v1")
        cohere = CohereReranker(api_key="key", base_url=url, max_retries=0)
        with closing(cohere), pytest.raises(LLMResponseError, match="cohere:"):
            cohere.score(QUESTION, CANDIDATES[:1])


def test_a_lone_surrogate_in_a_question_does_not_cost_the_call() -> None:
    with ChatServer([says("Ada.")]) as server:
        llm = OpenAIChat("m", base_url=server.url, max_retries=0)
        assert llm.complete([Message("user", "Who\ud800?")]).text == "Ada."
        llm.close()
    assert server.requests[0]["messages"][0]["content"] == "Who\ufffd?"


@pytest.mark.parametrize("usage", [None, "12", math.nan, math.inf, -5, 10**400, True, 1.5, [1]])
def test_a_usage_that_is_no_number_is_estimated_and_costs_no_answer(usage: Any) -> None:
    def reply(messages: Sequence[Message]) -> Completion:
        return Completion(ACCEPTED if "adjustment" in messages[0].content else "Ada.", "m", usage, usage)

    options: dict[str, Any] = {"prices": PriceTable({"m": Price(1.0, 1.0)}), "budget": Budget(cost=1.0)}
    answer = answering(ScriptedLLM(reply, name="m"), **options).answer(QUESTION, candidates=CANDIDATES)
    assert answer.text == "Ada."
    assert all(call.usage_estimated and call.input_tokens > 0 for call in answer.trace.calls)


def test_a_stream_that_breaks_or_is_left_leaves_its_call_in_the_trace() -> None:
    class Breaks(ScriptedLLM):
        def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
            yield "Ada "
            raise LLMConnectionError("down")

        async def astream(self, messages: Sequence[Message]) -> Any:
            yield "Ada "
            raise LLMConnectionError("down")

    trace = Trace(QUESTION)
    engine = answering(Breaks([]), controller=FeedbackController(max_rounds=1))
    with pytest.raises(LLMConnectionError):
        list(engine.stream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True))
    with pytest.raises(LLMConnectionError):
        asyncio.run(drained(engine.astream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True)))
    left = engine.stream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True)
    next(left)
    left.close()  # type: ignore[attr-defined]
    broken, abroken, given_up = trace.calls
    assert broken.error == abroken.error == "LLMConnectionError: down"
    assert given_up.error.startswith("LLMError: the call was given up")
    assert broken.text == abroken.text == given_up.text == "Ada "


@pytest.mark.parametrize("error", [ContextLengthError("too long"), ContentFilterError("filtered")])
@pytest.mark.parametrize(("refused", "most_calls"), [({0}, 9), ({4}, 9), ({9}, 9), (set(range(10)), 19)])
def test_refused_chunks_do_not_cost_their_batch(error: Exception, refused: set[int], most_calls: int) -> None:
    def refuse(text: str) -> Exception | None:
        return error if any(f"Chunk {n:02}" in text for n in refused) else None

    llm = ScriptedLLM(lambda m: scores(m, refuse))
    selection = RelevanceFilter(llm).filter(QUESTION, MANY)
    scored = ["relevance" in decision.candidate.scores for decision in selection.decisions]
    assert scored == [n not in refused for n in range(10)]
    assert all(str(error) in selection.reasons[n] for n in refused)
    assert len(llm.calls) <= most_calls


@pytest.mark.parametrize("refusal", [ContextLengthError("too long"), ContentFilterError("filtered")])
def test_a_piece_that_is_refused_alone_is_left_out_and_named(refusal: LLMError) -> None:
    big = Candidate("big", 0, 9, "word " * 5_000, 1.0, "probability")
    llm = ScriptedLLM(lambda m: refusal if "word word" in m[1].content else "Ada.")
    engine = answering(llm, ScriptedLLM([ACCEPTED]), k=4)
    answer = engine.answer(QUESTION, candidates=[big, *CANDIDATES])
    assert answer.text == "Ada."
    assert [c.doc_id for c in answer.selection.kept] == ["d0", "d1", "d2"]
    assert "left out 1 chunk that the model does not accept" in answer.note
    assert answer.selection.reasons[0].startswith("left out: ")
    assert len(llm.calls) == 4  # 4, 2 and 1 chunks, then the other 3


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(
    ("reason", "said"), [("length", "length limit"), ("content_filter", "content filter")]
)
def test_a_draft_that_is_cut_off_is_noted(reason: str, said: str, live: bool) -> None:
    def script(request: dict[str, Any]) -> Reply:
        is_judge = "adjustment" in request["messages"][0]["content"]
        return says(ACCEPTED) if is_judge else says("Keeper 3 is", finish_reason=reason)

    with client(script) as (llm, _):
        engine = answering(llm, controller=FeedbackController(max_rounds=1))
        *_, answer = engine.stream(QUESTION, candidates=CANDIDATES, live_final=live)
    assert not isinstance(answer, str)
    assert f"the draft of round 1 is cut off (by the {said})" in answer.note
    assert answer.trace.to_dict()["calls"][0]["cut_off"] == reason
    assert f"cut off by the {said}" in answer.trace.to_html()


def test_what_is_cut_off_is_not_believed() -> None:
    def short(messages: Sequence[Message]) -> Completion:
        reply = scores(messages, lambda text: None)
        assert isinstance(reply, str)
        return Completion(reply[:250], cut_off="length" if len(reply) > 250 else "")

    def judged(*replies: Any) -> str:
        engine = answering(ScriptedLLM(["Ada."]), ScriptedLLM(list(replies)))
        return engine.answer(QUESTION, candidates=CANDIDATES).note

    cut = Completion("Evaluation Score: 1", cut_off="length")
    assert judged(cut) == "the judgement is cut off (by the length limit)"  # and so would be the next one
    llm = ScriptedLLM(short)
    selection = RelevanceFilter(llm).filter(QUESTION, MANY)
    assert all("relevance" in decision.candidate.scores for decision in selection.decisions)
    assert len(llm.calls) == 4  # 3 of 10 fit, and in three more replies the other 7
    hopeless = ScriptedLLM(lambda m: Completion("{", cut_off="length"))
    assert not RelevanceFilter(hopeless).filter(QUESTION, MANY).kept[0].scores
    assert len(hopeless.calls) == 6  # a batch of 10, then quarters of it, once
    zero = ScriptedLLM(lambda m: Completion("0", cut_off="length"))
    assert "unscored" in RelevanceFilter(zero, mode="single").filter(QUESTION, CANDIDATES[:1]).reasons[0]
    rewriter = QueryRewriter(ScriptedLLM([Completion("who kept the", cut_off="length")]))
    assert rewriter.queries(QUESTION) == (QUESTION,)


def test_reasons_of_other_servers_are_known() -> None:
    known = [cut_off(reason) for reason in ("MAX_TOKENS", "SAFETY", "end_turn", None, 3)]
    assert known == ["length", "content_filter", "", "", ""]
    assert reported_cut_off(None, {"finish_reason": "stop"}, {"stop_reason": "max_tokens"}) == "length"


ONE_ROUND = FeedbackController(max_rounds=1)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Set when the test has ended: what a model may wait for."""
    event = threading.Event()
    yield event
    event.set()


def never_answers_in_time(llm: Any, live: bool) -> None:
    """Checks a stream of answers and an asynchronous one."""
    engine = answering(llm, controller=ONE_ROUND)
    options: dict[str, Any] = {"candidates": CANDIDATES, "live_final": live}
    with pytest.raises(LLMConnectionError, match="did not answer in time"):
        list(engine.stream(QUESTION, **options))
    with pytest.raises(LLMConnectionError, match="did not answer in time"):
        asyncio.run(drained(engine.astream(QUESTION, **options)))


@pytest.mark.parametrize(
    "reply", [says("late", stall=60.0), fails(429, retry_after="60"), Reply(endless=0.02)]
)
def test_a_synchronous_call_ends_with_the_budget(reply: Reply) -> None:
    with client([reply], timeout=60.0, max_retries=2) as (llm, _):
        engine = answering(llm, budget=Budget(seconds=0.3))
        left = r"all 0\.3 used; the call that was running was left behind"
        with pytest.raises(BudgetExceeded, match=left):
            engine.answer(QUESTION, candidates=CANDIDATES)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("live", [False, True])
def test_a_reply_that_drips_ends_in_time(live: bool) -> None:
    options: dict[str, Any] = {"api_key": "key", "timeout": 0.1, "max_retries": 0}
    with client([Reply(endless=0.05)], timeout=0.1) as (llm, server):
        never_answers_in_time(llm, live)
        with pytest.raises(ModelError, match="did not answer in time"):
            OpenAIEncoder("e", base_url=server.url, **options).encode(["text"])
        with closing(CohereReranker(base_url=server.url.removesuffix("/v1"), **options)) as cohere:
            with pytest.raises(LLMConnectionError, match="did not answer in time"):
                cohere.score(QUESTION, CANDIDATES)
            assert wait_until(lambda: not server.open_requests), "a call that was left behind reads on"


@pytest.mark.parametrize("live", [False, True])
def test_a_call_of_any_model_ends_without_a_budget(
    live: bool, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Drips(ScriptedLLM):
        def complete(self, *args: Any, **kwargs: Any) -> Completion:
            release.wait(30)
            raise AssertionError

        async def acomplete(self, *args: Any, **kwargs: Any) -> Completion:
            await asyncio.sleep(30)
            raise AssertionError

        def stream(self, messages: Any) -> Iterator[str]:
            while not release.wait(0.01):
                yield "x"

        async def astream(self, messages: Any) -> AsyncIterator[str]:
            while True:
                await asyncio.sleep(0.01)
                yield "x"

    monkeypatch.setattr("precise_rag.llm.budget.MOST_CALL_SECONDS", 0.2)
    never_answers_in_time(Drips([]), live)


def test_nothing_waits_for_a_model_that_was_left_behind_and_a_draft_is_kept(release: threading.Event) -> None:
    slow, budget = load_llm(lambda prompt: str(release.wait(30.0))), Budget(seconds=0.2)
    with pytest.raises(BudgetExceeded):
        asyncio.run(answering(slow, budget=budget).aanswer(QUESTION, candidates=CANDIDATES))
    selection = RelevanceFilter(slow, batch_size=1, budget=budget).filter(QUESTION, CANDIDATES)
    assert all("seconds over budget" in reason for reason in selection.reasons)
    engine = answering(ScriptedLLM(["Ada kept it."]), slow, budget=budget)
    answer = engine.answer(QUESTION, candidates=CANDIDATES)
    assert answer.text == "Ada kept it."
    assert answer.note.startswith("the answer is not judged: seconds over budget: all 0.2 used")
    assert not release.is_set()


def test_a_live_stream_ends_with_the_budget_and_leaves_its_call() -> None:
    with client([says("ready"), says("one two three four", stall=30.0)], timeout=60.0) as (llm, _):
        llm.complete(PROMPT)  # what is imported for the first call takes no time of the budget
        engine = answering(llm, controller=ONE_ROUND, budget=Budget(seconds=2.0))
        trace = Trace(QUESTION)
        items = engine.stream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True)
        assert [next(items), next(items)] == ["one ", "two "]
        with pytest.raises(BudgetExceeded, match="left behind"):
            next(items)
    (call,) = trace.calls
    assert call.error.startswith("BudgetExceeded")
    assert (call.text, call.output_tokens, call.usage_estimated) == ("one two ", 2, True)
