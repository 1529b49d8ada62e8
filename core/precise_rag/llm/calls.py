"""Send many prompts to one model, concurrently and within a budget, and record each call."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial

from precise_rag.errors import BudgetExceeded, LLMAuthenticationError, LLMError
from precise_rag.llm.budget import Budget, Spending
from precise_rag.llm.deadline import Deadline
from precise_rag.llm.failures import failure_of
from precise_rag.llm.usage import checked_completion, record_call
from precise_rag.prompts import Prompt
from precise_rag.protocols import LLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import CallRecord, Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Completion

CallOutcome = Completion | LLMError
"""What a call returned, or why it failed."""

_Timed = tuple[CallOutcome | Exception, float]
"""An outcome, or an exception that is no failure of the model, and the milliseconds that the call took."""

_CANCELLED = LLMError("the call was cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Sends prompts to a language model for one stage of one question.

    role: name of the stage in the trace.
    llm: the model.
    spending: the budget that the calls count against.
    prices: prices for the budget and the trace.
    trace: gets a record of each call.
    max_concurrency: calls at a time.

    A call that fails, or that the budget has no room for, gives an LLMError in place of a completion.
    Only LLMAuthenticationError is raised, because every other call would fail, too; the calls made at the
    same time are recorded first. With a budget the prompts are sent in waves of `max_concurrency`, so it
    is exceeded by the replies of one wave at most.
    """

    role: str
    llm: LLM
    spending: Spending
    prices: PriceTable
    trace: Trace
    max_concurrency: int

    def ask(self, prompts: Sequence[Prompt]) -> list[CallOutcome]:
        """Return one outcome per prompt, in order. Concurrent calls run in threads."""
        outcomes: list[CallOutcome] = []
        with ThreadPoolExecutor(self.max_concurrency) as pool:
            for wave in self._waves(prompts):
                admitted = self._admitted(wave)
                if self.max_concurrency == 1 or len(wave) == 1:
                    timed = [self._one(prompt) for prompt in admitted]
                else:
                    jobs = [pool.submit(copy_context().run, self._one, prompt) for prompt in admitted]
                    timed = [job.result() for job in jobs]
                outcomes += self._counted(admitted, timed)
        return outcomes

    async def aask(self, prompts: Sequence[Prompt]) -> list[CallOutcome]:
        """`ask` without blocking the event loop. Cancelling it cancels the running calls."""
        outcomes: list[CallOutcome] = []
        turns = asyncio.Semaphore(self.max_concurrency)
        for wave in self._waves(prompts):
            admitted = self._admitted(wave)
            timed: list[_Timed | None] = [None] * len(admitted)
            try:
                async with asyncio.TaskGroup() as group:
                    for row, prompt in enumerate(admitted):
                        group.create_task(self._aone(prompt, turns, timed, row))
            except asyncio.CancelledError:
                self._counted(admitted, timed)
                raise
            outcomes += self._counted(admitted, timed)
        return outcomes

    def _waves(self, prompts: Sequence[Prompt]) -> Iterator[Sequence[Prompt]]:
        size = self.max_concurrency if self.spending.budget != Budget() else max(len(prompts), 1)
        for first in range(0, len(prompts), size):
            yield prompts[first : first + size]

    def _admitted(self, wave: Sequence[Prompt]) -> list[Prompt | BudgetExceeded]:
        """Each prompt of a wave, or BudgetExceeded if the budget has no room for it beside those before."""
        admitted: list[Prompt | BudgetExceeded] = []
        calls = tokens = 0
        for prompt in wave:
            more = tokens + estimate_prompt_tokens(prompt.messages)
            try:
                self.spending.check(
                    self.llm.name, more, self.prices.cost(self.llm.name, more, 0), calls=calls + 1
                )
            except BudgetExceeded as error:
                admitted.append(error)
            else:
                admitted.append(prompt)
                calls, tokens = calls + 1, more
        return admitted

    def _one(self, prompt: Prompt | BudgetExceeded) -> _Timed:
        if isinstance(prompt, BudgetExceeded):
            return prompt, 0.0
        started = time.perf_counter()
        try:
            with Deadline(self.spending) as deadline:
                reply = deadline.call(partial(self.llm.complete, prompt.messages, schema=prompt.schema))
            outcome: CallOutcome | Exception = checked_completion(reply, self.llm.name, prompt.messages)
        except Exception as error:
            outcome = failure_of(error, self.llm.name)
        return outcome, (time.perf_counter() - started) * 1e3

    async def _aone(
        self, prompt: Prompt | BudgetExceeded, turns: asyncio.Semaphore, timed: list[_Timed | None], row: int
    ) -> None:
        """Put what `_one` returns into a row of `timed`."""
        if isinstance(prompt, BudgetExceeded):
            timed[row] = prompt, 0.0
            return
        async with turns:
            timed[row] = _CANCELLED, 0.0
            started = time.perf_counter()
            try:
                async with self.spending.time_limit():
                    reply = await self.llm.acomplete(prompt.messages, schema=prompt.schema)
                outcome: CallOutcome | Exception = checked_completion(reply, self.llm.name, prompt.messages)
            except Exception as error:
                outcome = failure_of(error, self.llm.name)
            timed[row] = outcome, (time.perf_counter() - started) * 1e3

    def _counted(
        self, prompts: Sequence[Prompt | BudgetExceeded], timed: Sequence[_Timed | None]
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
            record = CallRecord(self.role, prompt.version, self.llm.name, ms, messages=prompt.messages)
            record_call(record, outcome, spending=self.spending, prices=self.prices, trace=self.trace)
            if isinstance(outcome, LLMAuthenticationError):
                fatal = fatal or outcome
        if fatal is not None:
            raise fatal
        return outcomes
