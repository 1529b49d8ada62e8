"""A language model for tests."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.types import Completion, Message, Schema

_WORD = re.compile(r"\S+\s*|\s+")
Reply = str | Completion | Exception
"""A reply of a ScriptedLLM; exceptions are raised."""


class Call(NamedTuple):
    """One call of a ScriptedLLM.

    messages: the prompt.
    schema: the JSON schema for the reply, if one was passed.
    """

    messages: tuple[Message, ...]
    schema: Schema | None

    @property
    def text(self) -> str:
        """The contents of all messages as one string."""
        return "\n\n".join(message.content for message in self.messages)


class ScriptedLLM:
    """A language model for tests that returns the replies you give it and records its calls.

    replies: the replies in order, each a text, a Completion or an exception to raise; or a function
    from the messages to one reply.
    name: the model's name.
    delay: seconds that each call takes.
    calls: (attribute) all calls in order, each with `messages`, `schema` and `text`.
    Raises AssertionError, with the prompt, if it is called after the last reply.

    >>> from precise_rag.types import Message
    >>> llm = ScriptedLLM(["Hello.", TimeoutError("too slow")])
    >>> llm.complete([Message("user", "Say hello.")]).text
    'Hello.'
    >>> llm.calls[0].text
    'Say hello.'
    >>> llm.complete([Message("user", "Again.")])
    Traceback (most recent call last):
    TimeoutError: too slow
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[Sequence[Message]], Reply],
        *,
        name: str = "scripted",
        delay: float = 0.0,
    ) -> None:
        self.name = name
        self.delay = delay
        self.calls: list[Call] = []
        self._script = replies if callable(replies) else partial(_next_reply, iter(replies))

    def complete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """Return the next reply."""
        time.sleep(self.delay)
        return self._reply(messages, schema)

    async def acomplete(self, messages: Sequence[Message], *, schema: Schema | None = None) -> Completion:
        """Return the next reply."""
        await asyncio.sleep(self.delay)
        return self._reply(messages, schema)

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """Yield the next reply word by word, then its Completion."""
        completion = self.complete(messages)
        yield from _WORD.findall(completion.text)
        yield completion

    async def astream(self, messages: Sequence[Message]) -> AsyncIterator[str | Completion]:
        """Yield the next reply word by word, then its Completion."""
        completion = await self.acomplete(messages)
        for word in _WORD.findall(completion.text):
            yield word
        yield completion

    def _reply(self, messages: Sequence[Message], schema: Schema | None) -> Completion:
        self.calls.append(Call(tuple(messages), schema))
        reply = self._script(messages)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Completion):
            return reply
        n_input, n_output = estimate_prompt_tokens(messages), estimate_tokens(reply)
        return Completion(reply, self.name, n_input, n_output, usage_estimated=True)


def _next_reply(remaining: Iterator[Reply], messages: Sequence[Message]) -> Reply:
    for reply in remaining:
        return reply
    prompt = "\n\n".join(message.content for message in messages)
    raise AssertionError(f"ScriptedLLM has no reply left, but was called with:\n{prompt}")
