from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.bridge.pydantic import Field
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import Document

from support.documents import read_cases
from support.frameworks import events_of_llamaindex

LIGHTHOUSE, BAKERY = read_cases("documents.json", "for LlamaIndex")


class ScriptedChat(CustomLLM):
    """A LlamaIndex LLM that replies by a function of the prompt."""

    reply: Callable[[str], str]
    prompts: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted", context_window=32_000)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text=self.reply(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        text = self.complete(prompt).text

        def pieces():
            for end, character in enumerate(text, start=1):
                yield CompletionResponse(text=text[:end], delta=character)

        return pieces()


@pytest.fixture
def events() -> Iterator[list[BaseEvent]]:
    """The events that are sent while a test runs, in order."""
    with events_of_llamaindex() as seen:
        yield seen


@pytest.fixture
def documents() -> list[Document]:
    """Two documents; one repeats a paragraph, and has metadata that no model may see."""
    hidden = {"excluded_embed_metadata_keys": ["secret"], "excluded_llm_metadata_keys": ["secret"]}
    return [
        Document(
            doc_id="lighthouse", text=LIGHTHOUSE, metadata={"title": "Lamps", "secret": "s3cret"}, **hidden
        ),
        Document(doc_id="bakery", text=BAKERY, metadata={"title": "Bread"}),
    ]


@pytest.fixture
def scripted_chat() -> type[ScriptedChat]:
    return ScriptedChat


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start each test with unset global settings, and restore them."""
    monkeypatch.setattr(Settings, "_embed_model", None)
    monkeypatch.setattr(Settings, "_llm", None)
