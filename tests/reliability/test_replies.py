"""Whatever a server or model replies is one clear error, and costs no answer that is there already."""

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from precise_rag.candidate_filters import RelevanceFilter
from precise_rag.candidate_filters.relevance_scoring import parse_score
from precise_rag.encoders.openai import OpenAIEncoder
from precise_rag.errors import (
    ContentFilterError,
    ContextLengthError,
    InputError,
    LLMAuthenticationError,
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    LLMResponseError,
    LLMServerError,
    ModelError,
)
from precise_rag.feedback import FeedbackController, parse_judgement
from precise_rag.llm import Budget, OpenAIChat
from precise_rag.llm.finish import cut_off, reported_cut_off
from precise_rag.prompts import cited_numbers
from precise_rag.rerank import CohereReranker
from precise_rag.rewriting import QueryRewriter
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Price, PriceTable, Trace
from precise_rag.types import Candidate, Completion, Message
from support.chat_server import ChatServer, Reply, fails, says
from support.feedback import answering
from support.misbehaving import ACCEPTED, CANDIDATES, MANY, PROMPT, QUESTION, client, scores

MORE = '{"reason": "so", "score": 4, "adjustment": 1}'

FAULTS: dict[str, tuple[Reply, type[LLMError], str]] = {
    "a refused key": (fails(401, "bad key"), LLMAuthenticationError, "check api_key or OPENAI_API_KEY"),
    "a forbidden key": (fails(403, "not yours"), LLMAuthenticationError, "403"),
    "a rate limit": (fails(429, "slow down", retry_after="7"), LLMRateLimitError, "wait 7 s, as it asks"),
    "a server error": (fails(500, "oops"), LLMServerError, "500"),
    "a busy server": (fails(503, "busy"), LLMServerError, "503"),
    "no such model": (fails(404, "no such model"), LLMError, "no such model"),
    "a page": (
        Reply("<html>hello</html>", headers={"Content-Type": "text/html"}),
        LLMResponseError,
        "has no",
    ),
    "no JSON": (Reply('{"choices": [{"mess'), LLMResponseError, "not a completion"),
    "deep JSON": (Reply("[" * 100_000), LLMResponseError, "not a completion"),
    "a long number": (Reply('{"created": ' + "9" * 5_000 + "}"), LLMResponseError, "not a completion"),
    "no choices": (Reply({"choices": []}), LLMResponseError, "has no completion"),
    "a text of choices": (Reply({"choices": "abc"}), LLMResponseError, "has no completion"),
    "another object": (Reply({"unrelated": 1}), LLMResponseError, "has no completion"),
    "a number as text": (says(7), LLMResponseError, "must be a string"),  # type: ignore[arg-type]
    "a blank text": (says("  \n"), LLMResponseError, "empty"),
    "an end before the body": (Reply("{}", cut=True), LLMConnectionError, "cannot be reached"),
    "no reply in time": (says("late", stall=30.0), LLMConnectionError, "did not answer in time"),
}
PROMPT_FAULTS: dict[str, tuple[Reply, type[LLMError], str]] = {
    "too long": (fails(400, "too much", code="context_length_exceeded"), ContextLengthError, "longer than"),
    "too long, in words": (fails(400, "exceeds the available context size"), ContextLengthError, "size"),
    "filtered": (fails(400, "filtered", code="content_filter"), ContentFilterError, "refused the prompt"),
    "flagged": (fails(400, "Your input was flagged by moderation"), ContentFilterError, "flagged"),
    "a filtered reply": (says("", finish_reason="content_filter"), ContentFilterError, "left no text"),
}


def patience(reply: Reply) -> float:
    """Seconds that a client waits for a reply."""
    return 0.5 if reply.stall else 10.0


@pytest.mark.parametrize("name", [*FAULTS, *PROMPT_FAULTS])
def test_a_chat_model_says_what_is_wrong(name: str) -> None:
    reply, error, said = (FAULTS | PROMPT_FAULTS)[name]

    async def acomplete() -> None:
        try:
            await llm.acomplete(PROMPT)
        finally:
            await llm.aclose()

    with client([reply], timeout=patience(reply)) as llm:
        for call in (lambda: llm.complete(PROMPT), lambda: asyncio.run(acomplete())):
            with pytest.raises(error, match=said) as raised:
                call()
            assert type(raised.value) is error
            assert str(raised.value).startswith("m: ")
        if not isinstance(reply.body, dict) or reply.status != 200:
            with pytest.raises(LLMError, match=r"^m: "):
                list(llm.stream(PROMPT))


@pytest.mark.parametrize("name", FAULTS)
def test_encoders_and_rerankers_say_it_too(name: str) -> None:
    reply, error, _ = FAULTS[name]
    options: dict[str, Any] = {"api_key": "key", "timeout": patience(reply), "max_retries": 0}
    with ChatServer([reply]) as server:
        encoder = OpenAIEncoder("e", base_url=server.url, **options)
        with pytest.raises(ModelError, match="openai:e returned no embeddings"):
            encoder.encode(["text"])
        with CohereReranker(base_url=server.url.removesuffix("/v1"), **options) as cohere:
            expected = error if reply.status != 200 or reply.cut or reply.stall else LLMResponseError
            with pytest.raises(expected, match="cohere:"):
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


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_an_error_before_the_first_draft_and_a_note_after_it(name: str) -> None:
    reply, error, _ = FAULTS[name]
    draft = says("Ada kept it [1].")

    def of_judge(request: dict[str, Any]) -> Reply:
        return reply if "adjustment" in request["messages"][0]["content"] else draft

    with client([reply], timeout=patience(reply)) as llm, pytest.raises(error, match=r"^m: "):
        answering(llm).answer(QUESTION, candidates=CANDIDATES)
    with client(of_judge, timeout=patience(reply)) as llm:
        answer = answering(llm).answer(QUESTION, candidates=CANDIDATES)
    assert (answer.text, answer.note[:21]) == ("Ada kept it [1].", "the judge failed: m: ")
    with client([draft, says(MORE), reply], timeout=patience(reply)) as llm:
        answer = answering(llm, k=2).answer(QUESTION, candidates=CANDIDATES)
    assert (answer.text, answer.note[:25]) == ("Ada kept it [1].", "round 2 has no draft: m: ")
    assert answer.trace is not None
    assert answer.trace.calls[-1].error.startswith(error.__name__)


def test_an_empty_reply_of_any_model_is_no_answer_and_counts() -> None:
    trace, empty = Trace(QUESTION), Completion(" \n", "m", 70, 5)
    with pytest.raises(LLMResponseError, match="the completion is empty"):
        answering(ScriptedLLM([empty])).answer(QUESTION, candidates=CANDIDATES, trace=trace)
    assert [(call.input_tokens, call.output_tokens) for call in trace.calls] == [(70, 5)]
    answer = answering(ScriptedLLM(["Ada.", MORE, empty]), k=2).answer(QUESTION, candidates=CANDIDATES)
    assert answer.text == "Ada."
    assert "round 2 has no draft" in answer.note


def test_a_lone_surrogate_in_a_question_does_not_cost_the_call() -> None:
    with ChatServer([says("Ada.")]) as server:
        llm = OpenAIChat("m", base_url=server.url, max_retries=0)
        assert llm.complete([Message("user", "Who\ud800?")]).text == "Ada."
        llm.close()
    assert server.requests[0]["messages"][0]["content"] == "Who\ufffd?"


@pytest.mark.parametrize("usage", [None, "12", math.nan, math.inf, -5, 10**400, True, 1.5, [1]])
def test_a_usage_that_is_no_number_is_estimated_and_costs_no_answer(usage: Any) -> None:
    llm = ScriptedLLM(
        lambda m: Completion(ACCEPTED if "adjustment" in m[0].content else "Ada.", "usage", usage, usage),
        name="usage",
    )
    options: dict[str, Any] = {"prices": PriceTable({"usage": Price(1.0, 1.0)}), "budget": Budget(cost=1.0)}
    answer = answering(llm, **options).answer(QUESTION, candidates=CANDIDATES)
    assert answer.text == "Ada."
    assert answer.trace is not None
    assert all(call.usage_estimated and call.input_tokens > 0 for call in answer.trace.calls)
    body = says("Ada.").body
    assert isinstance(body, dict)
    reported = usage if isinstance(usage, str | int | float | list) else 0
    for sent in ({"prompt_tokens": reported, "completion_tokens": 1}, "none"):
        with client([Reply({**body, "usage": sent})]) as chat:
            assert chat.complete(PROMPT).text == "Ada."


@pytest.mark.parametrize("digits", [400, 5_000, 100_000])
def test_long_numbers_in_replies_are_read_as_none(digits: int) -> None:
    number = "1" + "0" * digits
    for reply in (f'{{"score": {number}}}', f'{{"score": "{number}"}}', f"Evaluation Score: {number}"):
        assert parse_judgement(reply).status == "unparsed"
        assert parse_score(reply) is None
    assert cited_numbers(f"Ada [{number}].") == []


@pytest.mark.parametrize("error", [LLMConnectionError("down"), ContextLengthError("long"), RuntimeError("x")])
def test_a_stream_that_breaks_or_is_left_leaves_its_call_in_the_trace(error: Exception) -> None:
    class Breaks(ScriptedLLM):
        def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
            yield "Ada "
            raise error

        async def astream(self, messages: Sequence[Message]) -> Any:
            yield "Ada "
            raise error

    async def drain(trace: Trace) -> None:
        async for _ in engine.astream(QUESTION, candidates=CANDIDATES, trace=trace, live_final=True):
            pass

    engine = answering(Breaks([]), controller=FeedbackController(max_rounds=1))
    traces = Trace(QUESTION), Trace(QUESTION), Trace(QUESTION)
    with pytest.raises(LLMError) as raised:
        list(engine.stream(QUESTION, candidates=CANDIDATES, trace=traces[0], live_final=True))
    with pytest.raises(type(raised.value), match=str(raised.value)):
        asyncio.run(drain(traces[1]))
    left = engine.stream(QUESTION, candidates=CANDIDATES, trace=traces[2], live_final=True)
    next(left)
    left.close()  # type: ignore[attr-defined]
    broken, abroken, given_up = (trace.calls[0] for trace in traces)
    assert broken.error == abroken.error == f"{type(raised.value).__name__}: {raised.value}"
    assert given_up.error.startswith("LLMError: the call was given up")
    assert broken.text == abroken.text == given_up.text == "Ada "


@pytest.mark.parametrize("reply", [AssertionError("a mistake"), InputError("no such option"), "text"])
def test_synchronous_and_asynchronous_calls_raise_the_same(reply: Any) -> None:
    class Odd:
        name = "odd"

        def complete(self, messages: Sequence[Message], *, schema: Any = None) -> Any:
            if isinstance(reply, Exception):
                raise reply
            return reply

        async def acomplete(self, messages: Sequence[Message], *, schema: Any = None) -> Any:
            return self.complete(messages)

    loop, relevance, rewriter = answering(Odd()), RelevanceFilter(Odd(), batch_size=1), QueryRewriter(Odd())
    asked = partial(loop.answer, QUESTION, candidates=CANDIDATES)
    aasked = partial(loop.aanswer, QUESTION, candidates=CANDIDATES)
    calls: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (asked, aasked),
        (lambda: relevance.filter(QUESTION, CANDIDATES), lambda: relevance.afilter(QUESTION, CANDIDATES)),
        (lambda: rewriter.queries(QUESTION), lambda: rewriter.aqueries(QUESTION)),
    ]

    def outcome(run: Callable[[], Any]) -> tuple[type, str]:
        try:
            result = run()
        except Exception as error:
            return type(error), str(error)
        return type(result), str(getattr(result, "reasons", result))

    async def awaited(call: Callable[[], Any]) -> Any:
        return await call()

    for sync, later in calls:
        assert outcome(sync) == outcome(partial(asyncio.run, awaited(later)))


@pytest.mark.parametrize("error", [ContextLengthError("too long"), ContentFilterError("filtered")])
@pytest.mark.parametrize("culprit", [0, 4, 9])
def test_one_refused_chunk_does_not_cost_its_batch(error: Exception, culprit: int) -> None:
    llm = ScriptedLLM(lambda m: scores(m, lambda text: error if f"Chunk {culprit:02}" in text else None))
    selection = RelevanceFilter(llm).filter(QUESTION, MANY)
    scored = ["relevance" in decision.candidate.scores for decision in selection.decisions]
    assert scored == [n != culprit for n in range(10)]
    assert str(error) in selection.reasons[culprit]
    assert len(llm.calls) <= 1 + 2 * math.ceil(math.log2(10))


@pytest.mark.parametrize(("budget", "calls"), [(Budget(), 19), (Budget(calls=5), 5)])
def test_refusing_every_chunk_costs_fewer_than_two_calls_each(budget: Budget, calls: int) -> None:
    llm = ScriptedLLM(lambda m: ContextLengthError("too long"))
    RelevanceFilter(llm, budget=budget).filter(QUESTION, MANY)
    assert len(llm.calls) == calls


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
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_draft_that_is_cut_off_is_noted(reason: str, live: bool) -> None:
    def script(request: dict[str, Any]) -> Reply:
        is_judge = "adjustment" in request["messages"][0]["content"]
        return says(ACCEPTED) if is_judge else says("Keeper 3 is", finish_reason=reason)

    with client(script) as llm:
        engine = answering(llm, controller=FeedbackController(max_rounds=1))
        *_, answer = engine.stream(QUESTION, candidates=CANDIDATES, live_final=live)
    said = reason.replace("_", " ") + (" limit" if reason == "length" else "")
    assert not isinstance(answer, str)
    assert f"the draft of round 1 is cut off (by the {said})" in answer.note
    assert answer.trace is not None
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
    assert judged(cut, ACCEPTED) == "accepted with 9 of 10"
    assert judged(cut, cut) == "the judgement is cut off (by the length limit)"
    selection = RelevanceFilter(ScriptedLLM(short)).filter(QUESTION, MANY)  # a batch is halved
    assert all("relevance" in decision.candidate.scores for decision in selection.decisions)
    zero = ScriptedLLM(lambda m: Completion("0", cut_off="length"))
    assert "unscored" in RelevanceFilter(zero, mode="single").filter(QUESTION, CANDIDATES[:1]).reasons[0]
    rewriter = QueryRewriter(ScriptedLLM([Completion("who kept the", cut_off="length")]))
    assert rewriter.queries(QUESTION) == (QUESTION,)


def test_reasons_of_other_servers_are_known() -> None:
    known = [cut_off(reason) for reason in ("MAX_TOKENS", "SAFETY", "end_turn", None, 3)]
    assert known == ["length", "content_filter", "", "", ""]
    assert reported_cut_off(None, {"finish_reason": "stop"}, {"stop_reason": "max_tokens"}) == "length"
