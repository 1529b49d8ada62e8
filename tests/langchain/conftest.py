from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from support.documents import read_cases

TEXTS = read_cases("documents.json", "for LangChain")


class ScriptedChat(BaseChatModel):
    """A LangChain chat model that replies by a function of the prompt."""

    reply: Callable[[str], str]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        prompt = "\n\n".join(str(message.content) for message in messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.reply(prompt)))])


@pytest.fixture
def documents() -> list[Document]:
    return [Document(text, id=name, metadata={"title": name, "tags": [name]}) for name, text in TEXTS.items()]


@pytest.fixture
def scripted_chat() -> type[ScriptedChat]:
    return ScriptedChat
