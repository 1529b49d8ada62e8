"""A chat engine over the query engine: each message is answered with the chat before it."""

import asyncio
from threading import Thread
from typing import Self

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.chat_engine.utils import aresponse_gen_from_query_engine, response_gen_from_query_engine
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.tools import ToolOutput

from llamaindex_precise.self_feedback import SelfFeedbackQueryEngine
from llamaindex_precise.words import own_words
from precise_rag._arguments import check_kind
from precise_rag.types import Message, check_query

_ROLES = {MessageRole.USER: "user", MessageRole.ASSISTANT: "assistant", MessageRole.SYSTEM: "system"}


class SelfFeedbackChatEngine(BaseChatEngine):
    """Chat engine that answers each message by a `SelfFeedbackQueryEngine`.

    A model first makes the message self-contained, within the same budget and trace. The response's
    source is the engine's response: `reply.sources[0].raw_output`.

    query_engine: answers the messages.
    memory: keeps the chat; default: a `ChatMemoryBuffer`.
    """

    @own_words
    def __init__(self, query_engine: SelfFeedbackQueryEngine, memory: BaseMemory | None = None) -> None:
        check_kind("query_engine", query_engine, SelfFeedbackQueryEngine, "a SelfFeedbackQueryEngine")
        self.engine = query_engine
        self.memory = ChatMemoryBuffer.from_defaults() if memory is None else memory
        check_kind("memory", self.memory, BaseMemory, "a LlamaIndex memory, such as ChatMemoryBuffer")
        self.callback_manager = query_engine.callback_manager

    @classmethod
    @own_words
    def from_engine(cls, query_engine: SelfFeedbackQueryEngine, memory: BaseMemory | None = None) -> Self:
        """Return a chat engine over `query_engine`."""
        return cls(query_engine, memory)

    @property
    def chat_history(self) -> list[ChatMessage]:
        """The messages so far."""
        return self.memory.get_all()

    def reset(self) -> None:
        """Forget the chat."""
        self.memory.reset()

    def chat(self, message: str, chat_history: list[ChatMessage] | None = None) -> AgentChatResponse:
        """Return the reply to a message.

        chat_history: replaces the chat so far.
        """
        history = self._history(message, chat_history)
        response = self.engine.answer(message, streaming=False, history=history)
        self.memory.put(ChatMessage(role=MessageRole.USER, content=message))
        self.memory.put(ChatMessage(role=MessageRole.ASSISTANT, content=str(response)))
        return AgentChatResponse(
            response=str(response),
            sources=[_tool_output(message, response)],
            source_nodes=response.source_nodes,
        )

    async def achat(self, message: str, chat_history: list[ChatMessage] | None = None) -> AgentChatResponse:
        """Run `chat` without blocking the event loop."""
        history = self._history(message, chat_history)
        response = await self.engine.aanswer(message, streaming=False, history=history)
        await self.memory.aput(ChatMessage(role=MessageRole.USER, content=message))
        await self.memory.aput(ChatMessage(role=MessageRole.ASSISTANT, content=str(response)))
        return AgentChatResponse(
            response=str(response),
            sources=[_tool_output(message, response)],
            source_nodes=response.source_nodes,
        )

    def stream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> StreamingAgentChatResponse:
        """Return the reply to a message in pieces, once its answer is accepted."""
        history = self._history(message, chat_history)
        response = self.engine.answer(message, streaming=True, history=history)
        assert isinstance(response, StreamingResponse)
        self.memory.put(ChatMessage(role=MessageRole.USER, content=message))
        reply = StreamingAgentChatResponse(
            chat_stream=response_gen_from_query_engine(response.response_gen),
            sources=[_tool_output(message, response)],
            source_nodes=response.source_nodes,
        )
        writer = Thread(target=reply.write_response_to_history, args=(self.memory,))
        reply.write_response_to_history_thread = writer
        writer.start()
        return reply

    async def astream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> StreamingAgentChatResponse:
        """Run `stream_chat` without blocking the event loop."""
        history = self._history(message, chat_history)
        response = await self.engine.aanswer(message, streaming=True, history=history)
        assert isinstance(response, AsyncStreamingResponse)
        await self.memory.aput(ChatMessage(role=MessageRole.USER, content=message))
        reply = StreamingAgentChatResponse(
            achat_stream=aresponse_gen_from_query_engine(response.async_response_gen()),
            sources=[_tool_output(message, response)],
            source_nodes=response.source_nodes,
        )
        reply.awrite_response_to_history_task = asyncio.create_task(
            reply.awrite_response_to_history(self.memory)
        )
        return reply

    def _history(self, message: str, chat_history: list[ChatMessage] | None) -> list[Message]:
        check_query(message)
        if chat_history is not None:
            self.memory.set(chat_history)
        return [
            Message(_ROLES[given.role], given.content)  # type: ignore[arg-type]
            for given in self.memory.get_all()
            if given.role in _ROLES and given.content
        ]


def _tool_output(message: str, response: RESPONSE_TYPE) -> ToolOutput:
    return ToolOutput(
        content=str(response) if not isinstance(response, StreamingResponse | AsyncStreamingResponse) else "",
        tool_name="query_engine",
        raw_input={"query": message},
        raw_output=response,
    )
