"""Run conversations with models: the only place where their requests are carried out."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, closing, contextmanager
from functools import partial
from typing import Any

from precise_rag.errors import LLMError, LLMResponseError
from precise_rag.failures import failure_of
from precise_rag.llm.budget import Deadline, most_call_seconds
from precise_rag.llm.calls import TimedCall, aask, ask, check_budget, counted
from precise_rag.llm.session import Ask, CallOutcome, Conversation, Request, Result, Work
from precise_rag.llm.usage import checked_completion, counted_completion
from precise_rag.protocols import StreamingLLM
from precise_rag.redaction import RedactedStream
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.types import Completion

_END: Any = object()
_TAG = 200
"""Characters at both ends of the thoughts so far in which their tags stand; the others are not read again."""


def drive(conversation: Conversation[Result]) -> Result:
    """Return the result of a conversation."""
    *_, result = stream(conversation)
    return result  # type: ignore[return-value]


async def adrive(conversation: Conversation[Result]) -> Result:
    """`drive` without blocking the event loop. Cancelling it cancels the running calls."""
    async with aclosing(astream(conversation)) as items:
        return [item async for item in items][-1]  # type: ignore[return-value]


def stream(conversation: Conversation[Result]) -> Iterator[str | Result]:
    """Yield the text to show live, then the result."""
    with closing(conversation):
        exchange = _Exchange(conversation)
        while (request := exchange.next_request()) is not None:
            try:
                if isinstance(request, Work):
                    exchange.reply = request.run()
                elif request.live and isinstance(request.llm, StreamingLLM):
                    yield from _show(_LiveReply(request, exchange))
                else:
                    exchange.reply = ask(request)
            except Exception as error:
                exchange.failure = error
        yield exchange.result


async def astream(conversation: Conversation[Result]) -> AsyncGenerator[str | Result, None]:
    """`stream` without blocking the event loop. If you leave it early, close it (`contextlib.aclosing`)."""
    with closing(conversation):
        exchange = _Exchange(conversation)
        while (request := exchange.next_request()) is not None:
            try:
                if isinstance(request, Work):
                    work = asyncio.to_thread(request.run) if request.arun is None else request.arun()
                    exchange.reply = await work
                elif request.live and isinstance(request.llm, StreamingLLM):
                    async with aclosing(_ashow(_LiveReply(request, exchange))) as pieces:
                        async for piece in pieces:
                            yield piece
                else:
                    exchange.reply = await aask(request)
            except Exception as error:
                exchange.failure = error
        yield exchange.result


class _Exchange:
    """A conversation with the reply to its last request, or why there is none."""

    def __init__(self, conversation: Conversation[Any]) -> None:
        self.reply: Any = None
        self.failure: Exception | None = None
        self.result: Any = None
        self._conversation = conversation

    def next_request(self) -> Request | None:
        """Send the reply or the failure; returns the next request, None once the result is there."""
        reply, failure = self.reply, self.failure
        self.reply = self.failure = None
        try:
            return self._conversation.send(reply) if failure is None else self._conversation.throw(failure)
        except StopIteration as stop:
            self.result = stop.value
            return None


class _LiveReply:
    """A reply that is shown while it is written. Raises BudgetExceeded if there is no room for it."""

    def __init__(self, request: Ask, exchange: _Exchange) -> None:
        (self.prompt,) = request.prompts
        check_budget(request, 1, estimate_prompt_tokens(self.prompt.messages))
        self.request, self._exchange = request, exchange
        self.outcome: CallOutcome | Exception = LLMError("the call was given up before its reply was whole")
        self._completion: Completion | None = None
        self._written: list[str] = []
        self._unread: str | None = ""
        self._redacted = RedactedStream()
        self._started = time.perf_counter()

    def add(self, item: Any) -> str:
        """Take one item of the stream, or its end; returns the piece to show: an empty one of thoughts."""
        if isinstance(item, Completion):
            self._completion = item
            return ""
        if is_last := item is _END:
            item = ""
        else:
            self.request.session.spending.check_time()
        if not isinstance(item, str):
            name, kind = self.request.llm.name, type(item).__name__
            raise LLMResponseError(f"{name}: the stream must hold strings, got {kind}")
        self._written.append(item)
        if self._unread is not None:
            unread = self._unread + item
            said = Completion(f"{unread}\n").spoken.strip()
            may_be_tag = said[:1] in ("<", "[", "◁") and f"_{said[1:].replace(':', '')}".isidentifier()
            begun = said and (is_last or not may_be_tag)
            item = Completion(unread).spoken if begun else ""
            self._unread = None if begun else unread[:_TAG] + unread[_TAG:][-_TAG:]
        piece = self._redacted.add(item, last=is_last)
        self.request.shown.extend(filter(None, [piece]))
        return piece

    @contextmanager
    def read(self) -> Iterator[None]:
        """Count the call at its end, as `ask` does; without a Completion its tokens are estimated."""
        name, messages = self.request.llm.name, self.prompt.messages
        try:
            yield
            if self._completion is None:
                self.outcome = counted_completion(name, "".join(self._written), messages)
            else:
                self.outcome = checked_completion(self._completion, name, messages)
        except Exception as error:
            self.outcome = failure_of(error, name)
        finally:
            ms = (time.perf_counter() - self._started) * 1e3
            self._exchange.reply = counted(self.request, [TimedCall(self.prompt, self.outcome, ms)])


def _show(live: _LiveReply) -> Iterator[str]:
    llm, messages = live.request.llm, live.prompt.messages
    assert isinstance(llm, StreamingLLM)
    spending = live.request.session.spending
    with live.read(), closing(Deadline(spending, most_call_seconds(llm))) as deadline:
        items = iter(deadline.call(partial(llm.stream, messages)))
        item = None
        while item is not _END:
            item = deadline.call(partial(next, items, _END))
            if piece := live.add(item):
                yield piece


async def _ashow(live: _LiveReply) -> AsyncGenerator[str, None]:
    llm, spending = live.request.llm, live.request.session.spending
    assert isinstance(llm, StreamingLLM)
    with live.read():
        items = llm.astream(live.prompt.messages)
        ends_at = time.monotonic() + most_call_seconds(llm)
        try:
            item = None
            while item is not _END:
                async with spending.time_limit(ends_at - time.monotonic()):
                    item = await anext(items, _END)
                if piece := live.add(item):
                    yield piece
        finally:
            if isinstance(items, AsyncGenerator):
                await items.aclose()
