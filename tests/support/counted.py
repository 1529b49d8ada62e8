"""A language model that counts its calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from precise_rag.testing import ScriptedLLM
from precise_rag.types import Completion


class Counted(ScriptedLLM):
    """Knows how many of its calls are running, and how many were at most."""

    running = most = 0
    _lock = Lock()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            yield
        finally:
            with self._lock:
                self.running -= 1

    def complete(self, *args: Any, **options: Any) -> Completion:
        with self._counted():
            return super().complete(*args, **options)

    async def acomplete(self, *args: Any, **options: Any) -> Completion:
        with self._counted():
            return await super().acomplete(*args, **options)
