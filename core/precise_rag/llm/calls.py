"""Send prompts to one model, concurrently and within a budget, and record each call."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple

from precise_rag.errors import BudgetExceeded, LLMAuthenticationError, LLMError
from precise_rag.failures import failure_of
from precise_rag.llm.budget import Budget, Deadline, most_call_seconds
from precise_rag.llm.session import Ask, CallOutcome
from precise_rag.llm.usage import checked_completion, model_name
from precise_rag.prompts import Prompt
from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.trace import CallRecord
from precise_rag.types import Completion


class TimedCall(NamedTuple):
    """A call that was made. outcome: may be an exception that is not a failure of the model."""

    prompt: Prompt
    outcome: CallOutcome | Exception
    ms: float


def ask(request: Ask) -> list[CallOutcome]:
    """Return one outcome per prompt, in order. Concurrent calls run in threads.

    A call that fails, or that the budget has no room for, gives an LLMError in place of a completion.
    Only LLMAuthenticationError is raised, because every other call would fail, too; the calls made at the
    same time are recorded first.
    """
    outcomes: list[CallOutcome] = []
    with ThreadPoolExecutor(request.max_concurrency) as pool:
        for prompts in _waves(request):
            if isinstance(prompts, BudgetExceeded):
                outcomes.append(prompts)
            elif request.max_concurrency == 1 or len(prompts) == 1:
                outcomes += counted(request, [_call(request, prompt) for prompt in prompts])
            else:
                jobs = [pool.submit(copy_context().run, _call, request, prompt) for prompt in prompts]
                outcomes += counted(request, [job.result() for job in jobs])
    return outcomes


async def aask(request: Ask) -> list[CallOutcome]:
    """`ask` without blocking the event loop. Cancelling it cancels the running calls."""
    outcomes: list[CallOutcome] = []
    turns = asyncio.Semaphore(request.max_concurrency)
    for prompts in _waves(request):
        if isinstance(prompts, BudgetExceeded):
            outcomes.append(prompts)
            continue
        tasks: list[asyncio.Task[TimedCall]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_acall(request, prompt, turns)) for prompt in prompts]
        finally:  # calls that were made count, also if this is cancelled
            outcomes += counted(request, (task.result() for task in tasks if not task.cancelled()))
    return outcomes


def check_budget(request: Ask, n_calls: int, input_tokens: int) -> None:
    """Raise BudgetExceeded if the budget has no room for calls, the last with so many tokens of input."""
    session, name = request.session, request.llm.name
    cost = session.prices.cost(name, input_tokens, 0)
    session.spending.check(name, input_tokens, cost, calls=n_calls + request.reserve)


def counted(request: Ask, calls: Iterable[TimedCall]) -> list[CallOutcome]:
    """Count calls against the budget and record them. Returns their outcomes.

    Raises LLMAuthenticationError, and exceptions that are not failures of the model, when all are counted.
    """
    outcomes: list[CallOutcome] = []
    fatal: Exception | None = None
    for prompt, outcome, ms in calls:
        if isinstance(outcome, Completion | LLMError):
            outcomes.append(outcome)
            _record(request, prompt, outcome, ms)
        if not isinstance(outcome, Completion | LLMError) or isinstance(outcome, LLMAuthenticationError):
            fatal = fatal or outcome
    if fatal is not None:
        raise fatal
    return outcomes


def _waves(request: Ask) -> Iterator[Sequence[Prompt] | BudgetExceeded]:
    """The prompts to send at a time, or why the budget has no room for the next one.

    Each wave is chosen when the one before it has been counted. Under a limit of tokens or cost a wave is
    one prompt, because nobody knows how long its reply will be.
    """
    prompts, limits = request.prompts, request.session.spending.budget
    size = len(prompts) if limits == Budget() else request.max_concurrency
    if limits.tokens is not None or limits.cost is not None:
        size = 1
    first = 0
    while first < len(prompts):
        wave = prompts[first : first + size]
        try:
            for n_calls, prompt in enumerate(wave, start=1):
                check_budget(request, n_calls, estimate_prompt_tokens(prompt.messages))
        except BudgetExceeded as error:
            wave = wave[: n_calls - 1]
            if not wave:
                yield error
                first += 1
                continue
        yield wave
        first += len(wave)


def _call(request: Ask, prompt: Prompt) -> TimedCall:
    llm, started = request.llm, time.perf_counter()
    try:
        with closing(Deadline(request.session.spending, most_call_seconds(llm))) as deadline:
            reply = deadline.call(partial(llm.complete, prompt.messages, schema=prompt.schema))
        outcome: CallOutcome | Exception = checked_completion(reply, llm.name, prompt.messages)
    except Exception as error:
        outcome = failure_of(error, llm.name)
    return TimedCall(prompt, outcome, (time.perf_counter() - started) * 1e3)


async def _acall(request: Ask, prompt: Prompt, turns: asyncio.Semaphore) -> TimedCall:
    llm = request.llm
    async with turns:
        started = time.perf_counter()
        try:
            async with request.session.spending.time_limit(most_call_seconds(llm)):
                reply = await llm.acomplete(prompt.messages, schema=prompt.schema)
            outcome: CallOutcome | Exception = checked_completion(reply, llm.name, prompt.messages)
        except asyncio.CancelledError:
            outcome = LLMError("the call was cancelled")
        except Exception as error:
            outcome = failure_of(error, llm.name)
        return TimedCall(prompt, outcome, (time.perf_counter() - started) * 1e3)


def _record(request: Ask, prompt: Prompt, outcome: CallOutcome, ms: float) -> None:
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
        details: dict[str, Any] = {"model": asked, "error": f"{type(outcome).__name__}: {outcome}"}
        details |= {"usage_estimated": bool(text), "text": text}
    else:
        model = model_name(outcome.model, asked)
        cost = session.prices.cost(model, *tokens)
        cost = session.prices.cost(asked, *tokens) if cost is None else cost
        details = {"model": model, "requested_model": asked, "cut_off": outcome.cut_off}
        details |= {"usage_estimated": outcome.usage_estimated, "text": outcome.text}
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
            overhead_tokens=estimate_prompt_tokens(prompt.messages) - estimate_tokens(prompt.context),
            **details,
        )
    )
