"""Send many prompts to one model, concurrently and within a budget, and record each call."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass

from precise_rag.errors import BudgetExceeded, LLMAuthenticationError, LLMError
from precise_rag.llm.budget import Budget, Spending
from precise_rag.llm.failures import translated
from precise_rag.llm.usage import record_call
from precise_rag.prompts import Prompt
from precise_rag.protocols import LLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import CallRecord, Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Completion

CallOutcome = Completion | LLMError
"""What a call returned, or why it failed."""


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
    Only LLMAuthenticationError is raised, because every other call would fail, too. With a budget the
    prompts are sent in waves of `max_concurrency`, so it is exceeded by the replies of one wave at most.
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
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._aone(prompt, turns)) for prompt in admitted]
            outcomes += self._counted(admitted, [task.result() for task in tasks])
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

    def _one(self, prompt: Prompt | BudgetExceeded) -> tuple[CallOutcome, float]:
        """The outcome of a prompt, and the milliseconds that it took."""
        if isinstance(prompt, BudgetExceeded):
            return prompt, 0.0
        started = time.perf_counter()
        try:
            with translated(self.llm.name):
                outcome: CallOutcome = self.llm.complete(prompt.messages, schema=prompt.schema)
        except LLMError as error:
            outcome = error
        return outcome, (time.perf_counter() - started) * 1e3

    async def _aone(
        self, prompt: Prompt | BudgetExceeded, turns: asyncio.Semaphore
    ) -> tuple[CallOutcome, float]:
        if isinstance(prompt, BudgetExceeded):
            return prompt, 0.0
        async with turns:
            started = time.perf_counter()
            try:
                with translated(self.llm.name):
                    async with self.spending.time_limit():
                        outcome: CallOutcome = await self.llm.acomplete(prompt.messages, schema=prompt.schema)
            except LLMError as error:
                outcome = error
            return outcome, (time.perf_counter() - started) * 1e3

    def _counted(
        self, prompts: Sequence[Prompt | BudgetExceeded], timed: Sequence[tuple[CallOutcome, float]]
    ) -> list[CallOutcome]:
        """The outcomes, once counted against the budget and recorded."""
        for prompt, (outcome, ms) in zip(prompts, timed, strict=True):
            if isinstance(prompt, BudgetExceeded):
                continue
            record = CallRecord(self.role, prompt.version, self.llm.name, ms, messages=prompt.messages)
            record_call(record, outcome, spending=self.spending, prices=self.prices, trace=self.trace)
            if isinstance(outcome, LLMAuthenticationError):
                raise outcome
        return [outcome for outcome, _ in timed]
