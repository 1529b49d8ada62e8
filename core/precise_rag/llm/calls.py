"""Many prompts to one model: at most so many at a time, within a budget, each call on record."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass

from precise_rag.errors import BudgetExceeded, LLMAuthenticationError, LLMError
from precise_rag.llm.budget import Budget, Spending
from precise_rag.llm.failures import translated
from precise_rag.llm.settle import settle
from precise_rag.prompts import Prompt
from precise_rag.protocols import LLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import CallRecord, Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Completion

Reply = Completion | LLMError


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Puts prompts to `llm`, `max_concurrency` at a time; `role` names them in the trace.

    A prompt that the budget has no room for, and a call that fails, get their LLMError in place of
    a completion; only a refused key is raised, since no other call would fare better. With a budget
    the prompts go out in waves of `max_concurrency`, so that it is passed by one wave's replies at
    most.
    """

    role: str
    llm: LLM
    spending: Spending
    prices: PriceTable
    trace: Trace
    max_concurrency: int

    def ask(self, prompts: Sequence[Prompt]) -> list[Reply]:
        """One reply per prompt, in order. More than one prompt at a time goes to threads."""
        replies: list[Reply] = []
        with ThreadPoolExecutor(self.max_concurrency) as pool:
            for wave in self._waves(prompts):
                admitted = self._admitted(wave)
                if self.max_concurrency == 1 or len(wave) == 1:
                    said = [self._one(prompt) for prompt in admitted]
                else:
                    jobs = [pool.submit(copy_context().run, self._one, prompt) for prompt in admitted]
                    said = [job.result() for job in jobs]
                replies += self._counted(admitted, said)
        return replies

    async def aask(self, prompts: Sequence[Prompt]) -> list[Reply]:
        """The same without blocking the event loop. Cancelling it cancels the calls in flight."""
        replies: list[Reply] = []
        turns = asyncio.Semaphore(self.max_concurrency)
        for wave in self._waves(prompts):
            admitted = self._admitted(wave)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._aone(prompt, turns)) for prompt in admitted]
            replies += self._counted(admitted, [task.result() for task in tasks])
        return replies

    def _waves(self, prompts: Sequence[Prompt]) -> Iterator[Sequence[Prompt]]:
        size = self.max_concurrency if self.spending.budget != Budget() else max(len(prompts), 1)
        for first in range(0, len(prompts), size):
            yield prompts[first : first + size]

    def _admitted(self, wave: Sequence[Prompt]) -> list[Prompt | BudgetExceeded]:
        """The prompts of a wave that the budget has room for together, and why not the others."""
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

    def _one(self, prompt: Prompt | BudgetExceeded) -> tuple[Reply, float]:
        """The reply to a prompt, and the milliseconds that it took."""
        if isinstance(prompt, BudgetExceeded):
            return prompt, 0.0
        started = time.perf_counter()
        try:
            with translated(self.llm.name):
                reply: Reply = self.llm.complete(prompt.messages, schema=prompt.schema)
        except LLMError as error:
            reply = error
        return reply, (time.perf_counter() - started) * 1e3

    async def _aone(self, prompt: Prompt | BudgetExceeded, turns: asyncio.Semaphore) -> tuple[Reply, float]:
        if isinstance(prompt, BudgetExceeded):
            return prompt, 0.0
        async with turns:
            started = time.perf_counter()
            try:
                with translated(self.llm.name):
                    async with self.spending.time_limit():
                        reply: Reply = await self.llm.acomplete(prompt.messages, schema=prompt.schema)
            except LLMError as error:
                reply = error
            return reply, (time.perf_counter() - started) * 1e3

    def _counted(
        self, prompts: Sequence[Prompt | BudgetExceeded], said: Sequence[tuple[Reply, float]]
    ) -> list[Reply]:
        """The replies, counted against the budget and put on record."""
        for prompt, (reply, ms) in zip(prompts, said, strict=True):
            if isinstance(prompt, BudgetExceeded):
                continue
            record = CallRecord(self.role, prompt.version, self.llm.name, ms, messages=prompt.messages)
            settle(record, reply, spending=self.spending, prices=self.prices, trace=self.trace)
            if isinstance(reply, LLMAuthenticationError):
                raise reply
        return [reply for reply, _ in said]
