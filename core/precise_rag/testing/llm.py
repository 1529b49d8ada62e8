"""A language model that says what a test wants."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.types import Completion, Message

Reply = str | Completion | Exception


class Call(NamedTuple):
    """What a ScriptedLLM was asked."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None

    @property
    def text(self) -> str:
        """All messages as one string."""
        return "\n\n".join(message.content for message in self.messages)


class ScriptedLLM:
    """Gives its replies in order, or what a function makes of each prompt, and remembers the calls.

    replies: strings, Completions, and exceptions, which are raised; or a function from the messages
    to one of these. delay: seconds that each call takes. Asked more often than it has replies, it
    fails with an AssertionError that shows the prompt.
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
        self._script = replies if callable(replies) else _in_order(replies)

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """The next reply."""
        time.sleep(self.delay)
        return self._reply(messages, schema)

    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """The next reply."""
        await asyncio.sleep(self.delay)
        return self._reply(messages, schema)

    def stream(self, messages: Sequence[Message]) -> Iterator[str | Completion]:
        """The next reply word by word, then whole."""
        completion = self.complete(messages)
        yield from re.findall(r"\S+\s*|\s+", completion.text)
        yield completion

    async def astream(self, messages: Sequence[Message]) -> AsyncIterator[str | Completion]:
        """The next reply word by word, then whole."""
        completion = await self.acomplete(messages)
        for piece in re.findall(r"\S+\s*|\s+", completion.text):
            yield piece
        yield completion

    def _reply(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Completion:
        self.calls.append(Call(tuple(messages), schema))
        reply = self._script(messages)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Completion):
            return reply
        return Completion(
            reply, self.name, estimate_prompt_tokens(messages), estimate_tokens(reply), usage_estimated=True
        )


def _in_order(replies: Iterable[Reply]) -> Callable[[Sequence[Message]], Reply]:
    remaining = iter(replies)

    def script(messages: Sequence[Message]) -> Reply:
        for reply in remaining:
            return reply
        prompt = "\n\n".join(message.content for message in messages)
        raise AssertionError(f"the script is over, but the model was asked:\n{prompt}")

    return script
