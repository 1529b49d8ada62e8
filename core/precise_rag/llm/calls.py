"""Send prompts to one model, concurrently and within a budget, and record each call."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

from precise_rag.errors import BudgetExceeded, LLMAuthenticationError, LLMError
from precise_rag.llm.budget import Budget, most_call_seconds
from precise_rag.llm.deadline import Deadline
from precise_rag.llm.failures import failure_of
from precise_rag.llm.session import Ask, CallOutcome
from precise_rag.llm.usage import checked_completion, model_name, most_reply_tokens
from precise_rag.prompts import Prompt
from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.trace import CallRecord
from precise_rag.types import Completion

_Timed = tuple[CallOutcome | Exception, float]
"""An outcome, or an exception that is not a failure of the model, and the milliseconds that the call took."""

_CANCELLED = LLMError("the call was cancelled")


def ask(request: Ask) -> list[CallOutcome]:
    """Return one outcome per prompt, in order. Concurrent calls run in threads.

    A call that fails, or that the budget has no room for, gives an LLMError in place of a completion.
    Only LLMAuthenticationError is raised, because every other call would fail, too; the calls made at the
    same time are recorded first. The calls that run at a time are those that fit into the budget with
    their longest replies, the last one excepted.
    """
    outcomes: list[CallOutcome] = []
    with ThreadPoolExecutor(request.max_concurrency) as pool:
        for admitted in _waves(request):
            if request.max_concurrency == 1 or len(admitted) == 1:
                timed = [_one(request, prompt) for prompt in admitted]
            else:
                jobs = [pool.submit(copy_context().run, _one, request, prompt) for prompt in admitted]
                timed = [job.result() for job in jobs]
            outcomes += _counted(request, admitted, timed)
    return outcomes


async def aask(request: Ask) -> list[CallOutcome]:
    """`ask` without blocking the event loop. Cancelling it cancels the running calls."""
    outcomes: list[CallOutcome] = []
    turns = asyncio.Semaphore(request.max_concurrency)
    for admitted in _waves(request):
        timed: list[_Timed | None] = [None] * len(admitted)
        try:
            async with asyncio.TaskGroup() as group:
                for row, prompt in enumerate(admitted):
                    group.create_task(_aone(request, prompt, turns, timed, row))
        except asyncio.CancelledError:
            _counted(request, admitted, timed)
            raise
        outcomes += _counted(request, admitted, timed)
    return outcomes


def check_budget(request: Ask, n_calls: int, input_tokens: int, reserved_tokens: int = 0) -> None:
    """Raise BudgetExceeded if the budget has no room for calls with so many tokens of input together.

    reserved_tokens: tokens of replies for which there must be room, too.
    """
    session, name = request.session, request.llm.name
    cost = session.prices.cost(name, input_tokens, reserved_tokens)
    session.spending.check(name, input_tokens + reserved_tokens, cost, calls=n_calls + request.reserve)


def record(request: Ask, prompt: Prompt, outcome: CallOutcome, ms: float) -> None:
    """Count a call against the budget and add it to the trace.

    A failed call counts, too; its tokens are those of the error, or are estimated if a part of the reply
    arrived. The price is that of the model that answered; if it is not listed, of the requested one.
    """
    session, asked = request.session, request.llm.name
    text = "".join(request.shown)
    tokens = outcome.input_tokens, outcome.output_tokens
    if isinstance(outcome, LLMError):
        if text:
            tokens = estimate_prompt_tokens(prompt.messages), estimate_tokens(text)
        cost = session.prices.cost(asked, *tokens) if any(tokens) else None
        details: dict[str, Any] = {
            "model": asked,
            "usage_estimated": bool(text),
            "text": text,
            "error": f"{type(outcome).__name__}: {outcome}",
        }
    else:
        model = model_name(outcome.model, asked)
        cost = session.prices.cost(model, *tokens)
        cost = session.prices.cost(asked, *tokens) if cost is None else cost
        details = {
            "model": model,
            "requested_model": asked,
            "usage_estimated": outcome.usage_estimated,
            "text": outcome.text,
            "cut_off": outcome.cut_off,
        }
    session.spending.add(sum(tokens), cost)
    session.trace.add(
        CallRecord(
            role=request.role,
            prompt_version=prompt.version,
            ms=ms,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            cost=cost,
            round=request.round,
            messages=prompt.messages,
            **details,
        )
    )


def _waves(request: Ask) -> Iterator[list[Prompt | BudgetExceeded]]:
    """The prompts to send at a time. Each wave is chosen when the one before it has been counted."""
    prompts = request.prompts
    limits = request.session.spending.budget
    size = max(len(prompts), 1) if limits == Budget() else request.max_concurrency
    reply_tokens: int | None = 0
    if limits.tokens is not None or limits.cost is not None:
        reply_tokens = most_reply_tokens(request.llm)
        size = 1 if reply_tokens is None else size
    first = 0
    while first < len(prompts):
        wave = _admitted(request, prompts[first : first + size], reply_tokens or 0)
        yield wave
        first += len(wave)


def _admitted(request: Ask, prompts: Sequence[Prompt], reply_tokens: int) -> list[Prompt | BudgetExceeded]:
    """The first prompts that fit into the budget together, or why the first one does not fit.

    reply_tokens: tokens of the longest reply. There is room for it beside every prompt but the last, so the
        budget is exceeded by one reply at most.
    """
    admitted: list[Prompt | BudgetExceeded] = []
    tokens = 0
    for n_before, prompt in enumerate(prompts):
        tokens += estimate_prompt_tokens(prompt.messages)
        try:
            check_budget(request, n_before + 1, tokens, n_before * reply_tokens)
        except BudgetExceeded as error:
            return admitted or [error]
        admitted.append(prompt)
    return admitted


def _one(request: Ask, prompt: Prompt | BudgetExceeded) -> _Timed:
    if isinstance(prompt, BudgetExceeded):
        return prompt, 0.0
    llm = request.llm
    started = time.perf_counter()
    try:
        with Deadline(request.session.spending, most_call_seconds(llm)) as deadline:
            reply = deadline.call(partial(llm.complete, prompt.messages, schema=prompt.schema))
        outcome: CallOutcome | Exception = checked_completion(reply, llm.name, prompt.messages)
    except Exception as error:
        outcome = failure_of(error, llm.name)
    return outcome, (time.perf_counter() - started) * 1e3


async def _aone(
    request: Ask,
    prompt: Prompt | BudgetExceeded,
    turns: asyncio.Semaphore,
    timed: list[_Timed | None],
    row: int,
) -> None:
    """Put the result of `_one` into a row of `timed`."""
    if isinstance(prompt, BudgetExceeded):
        timed[row] = prompt, 0.0
        return
    llm = request.llm
    async with turns:
        timed[row] = _CANCELLED, 0.0
        started = time.perf_counter()
        try:
            async with request.session.spending.time_limit(most_call_seconds(llm)):
                reply = await llm.acomplete(prompt.messages, schema=prompt.schema)
            outcome: CallOutcome | Exception = checked_completion(reply, llm.name, prompt.messages)
        except Exception as error:
            outcome = failure_of(error, llm.name)
        timed[row] = outcome, (time.perf_counter() - started) * 1e3


def _counted(
    request: Ask, prompts: Sequence[Prompt | BudgetExceeded], timed: Sequence[_Timed | None]
) -> list[CallOutcome]:
    """The outcomes, once all are counted against the budget and recorded. Raises those it must."""
    outcomes: list[CallOutcome] = []
    fatal: Exception | None = None
    for prompt, result in zip(prompts, timed, strict=True):
        if result is None:
            continue
        outcome, ms = result
        if not isinstance(outcome, Completion | LLMError):
            fatal = fatal or outcome
            continue
        outcomes.append(outcome)
        if isinstance(prompt, BudgetExceeded):
            continue
        record(request, prompt, outcome, ms)
        if isinstance(outcome, LLMAuthenticationError):
            fatal = fatal or outcome
    if fatal is not None:
        raise fatal
    return outcomes
