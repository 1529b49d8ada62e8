"""A language model that counts what a pipeline spends on it."""

from collections.abc import Mapping, Sequence
from typing import Any

from precise_rag._processes import ProcessLock
from precise_rag.protocols import LLM
from precise_rag.trace import Bill
from precise_rag.types import Completion, Message


class MeteredLLM:
    """A language model with a counter of calls and tokens. It may be used from several threads."""

    def __init__(self, llm: LLM) -> None:
        self.name = llm.name
        self._llm = llm
        self._lock = ProcessLock()
        self._spent = Bill()

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Completion:
        """Return the wrapped model's completion and count it."""
        return self._counted(self._llm.complete(messages, schema=schema))

    async def acomplete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the wrapped model's completion and count it."""
        return self._counted(await self._llm.acomplete(messages, schema=schema))

    def take(self) -> Bill:
        """Return what was spent since the last `take`, and start again from zero. The cost stays None."""
        with self._lock:
            spent, self._spent = self._spent, Bill()
        return spent

    def _counted(self, completion: Completion) -> Completion:
        call = Bill(1, completion.input_tokens, completion.output_tokens, None)
        with self._lock:
            self._spent = self._spent.plus(call)
        return completion
