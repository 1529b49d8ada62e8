import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from precise_rag.testing import HashEncoder

TEXTS = {
    "harbour": (
        "The harbour of Velm freezes in January. Ice breakers keep one channel open for the mail boat.\n\n"
        "In summer the quay is a market. Fishmongers sell smoked eel from wooden carts."
    ),
    "clock": (
        "The town clock was built by Ada Brandt in 1911. It runs on a falling weight of ninety kilograms.\n\n"
        "Every Sunday the keeper winds the weight up again. Nobody else has the key."
    ),
    "bread": (
        "Rye bread from Velm is baked twice. The second baking makes the crust dark and hard.\n\n"
        "Sailors took it to sea because it keeps for a month."
    ),
}


class ScriptedChat(BaseChatModel):
    """A LangChain chat model that replies by a function of the prompt and counts concurrent calls."""

    reply: Callable[[str], str]
    delay: float = 0.0
    prompts: list[str] = []  # noqa: RUF012 (a pydantic default: each model gets a copy)
    running: int = 0
    peak: int = 0
    lock: Any = None

    def model_post_init(self, context: Any) -> None:
        self.lock = threading.Lock()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @contextmanager
    def _count(self) -> Iterator[None]:
        with self.lock:
            self.running += 1
            self.peak = max(self.peak, self.running)
        try:
            yield
        finally:
            with self.lock:
                self.running -= 1

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        with self._count():
            time.sleep(self.delay)
            return self._result(messages)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        with self._count():
            await asyncio.sleep(self.delay)
            return self._result(messages)

    def _result(self, messages: list[BaseMessage]) -> ChatResult:
        prompt = "\n\n".join(str(message.content) for message in messages)
        self.prompts.append(prompt)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.reply(prompt)))])


@pytest.fixture
def documents() -> list[Document]:
    return [Document(text, id=name, metadata={"title": name, "tags": [name]}) for name, text in TEXTS.items()]


@pytest.fixture
def encoder() -> HashEncoder:
    return HashEncoder()


@pytest.fixture
def scripted_chat() -> type[ScriptedChat]:
    return ScriptedChat
