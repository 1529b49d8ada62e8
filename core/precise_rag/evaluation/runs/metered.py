"""What a pipeline spends on a language model while it retrieves."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precise_rag.protocols import LLM
from precise_rag.types import Completion, Message


class Spent(NamedTuple):
    """Calls of a language model and their tokens."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class MeteredLLM:
    """A language model that counts what it is asked; `take` reads the count and sets it to zero."""

    def __init__(self, llm: LLM) -> None:
        self.name = llm.name
        self._llm = llm
        self._lock = threading.Lock()
        self._spent = Spent()

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """The wrapped model's completion."""
        return self._counted(self._llm.complete(messages, schema=schema))

    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """The wrapped model's completion."""
        return self._counted(await self._llm.acomplete(messages, schema=schema))

    def take(self) -> Spent:
        """What was spent since the last time."""
        with self._lock:
            spent, self._spent = self._spent, Spent()
        return spent

    def _counted(self, completion: Completion) -> Completion:
        used = (1, completion.input_tokens, completion.output_tokens)
        with self._lock:
            self._spent = Spent(*(a + b for a, b in zip(self._spent, used, strict=True)))
        return completion
