"""Replies in a schema, from models of both frameworks that call functions."""

import asyncio
import json
import pickle
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

from precise_rag.errors import LLMAuthenticationError, LLMResponseError
from precise_rag.llm import load_llm
from precise_rag.prompts.wording import JUDGEMENT_SCHEMA
from precise_rag.protocols import LLM
from precise_rag.types import Message

PROMPT = (Message("system", "Judge it."), Message("user", "Where?"))
JUDGEMENT = {"reason": "right", "score": 9, "adjustment": 0}


class Server:
    """Replies in turn, the last one for good: a text, the arguments of a call, or the status of an error."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.requests = []
        self.finish_reason = "stop"

    def reply(self, messages, tools):
        """The next reply as a text and the arguments of a call; one of them is empty."""
        self.requests.append((messages, list(tools)))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, int):
            raise type("APIStatusError", (Exception,), {"status_code": reply})("no")
        if tools and isinstance(reply, str) and reply.startswith("refuse tools"):
            raise type("APIStatusError", (Exception,), {"status_code": 400})("tools are not supported")
        return ("", reply) if isinstance(reply, dict) else (reply, {})


class LlamaTools(FunctionCallingLLM):
    """Calls functions, as LlamaIndex's OpenAI class does."""

    server: Any
    thought: bool = True

    @property
    def metadata(self):
        return LLMMetadata(model_name="llama-t", is_chat_model=True, is_function_calling_model=self.thought)

    def chat(self, messages, tools=(), **_):
        text, arguments = self.server.reply([(m.role.value, m.content) for m in messages], tools)
        message = ChatMessage(role="assistant", content=text, additional_kwargs={"arguments": arguments})
        usage = {"prompt_tokens": 11, "completion_tokens": 7}
        choices = [{"finish_reason": self.server.finish_reason}]
        return ChatResponse(message=message, raw={"usage": usage, "choices": choices})

    async def achat(self, messages, tools=(), **_):
        return self.chat(messages, tools)

    def complete(self, *_, **__):
        raise NotImplementedError

    acomplete = stream_chat = astream_chat = stream_complete = astream_complete = complete

    def _prepare_chat_with_tools(self, tools, *_, chat_history=None, tool_required=False, **__):
        assert tool_required
        return {"messages": chat_history, "tools": [tool.metadata.to_openai_tool() for tool in tools]}

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **_):
        arguments = response.message.additional_kwargs["arguments"]
        selection = ToolSelection(tool_id="t1", tool_name="judgement", tool_kwargs=arguments)
        return [selection] if arguments else []


class LangTools(BaseChatModel):
    """Calls functions, as LangChain's ChatOpenAI does."""

    server: Any
    model: str = "lang-t"
    thought: bool = True

    @property
    def _llm_type(self):
        return "tools"

    def bind_tools(self, tools, *, tool_choice=None, **_):
        if not self.thought:
            raise NotImplementedError
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, messages, stop=None, run_manager=None, tools=(), **_):
        roles = {"human": "user"}
        text, arguments = self.server.reply([(roles.get(m.type, m.type), m.content) for m in messages], tools)
        calls = [{"name": "judgement", "args": arguments, "id": "t1"}] if arguments else []
        usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
        metadata = {"finish_reason": self.server.finish_reason}
        content = [{"type": "text", "text": part} for part in (text[:2], text[2:])]
        message = AIMessage(content, tool_calls=calls, usage_metadata=usage, response_metadata=metadata)
        return ChatResult(generations=[ChatGeneration(message=message)])


def asked(llm, way):
    """The completion, by complete or by acomplete."""
    if way == "sync":
        return llm.complete(PROMPT, schema=JUDGEMENT_SCHEMA)
    return asyncio.run(llm.acomplete(PROMPT, schema=JUDGEMENT_SCHEMA))


both = pytest.mark.parametrize("model", [LlamaTools, LangTools])
ways = pytest.mark.parametrize("way", ["sync", "async"])


@both
@ways
def test_a_model_that_calls_functions_replies_in_the_schema_and_so_does_its_copy_by_pickle(model, way):
    server = Server(JUDGEMENT, "France")
    llm = load_llm(model(server=server))
    assert isinstance(llm, LLM)
    completion = asked(llm, way)
    assert (llm.complete(PROMPT).text, completion.cut_off) == ("France", "")
    (messages, [tool]), (_, without_schema) = server.requests
    assert [role for role, _ in messages] == ["system", "user"]
    assert tool["function"]["name"] == "judgement"
    parameters = tool["function"]["parameters"]
    assert parameters["required"] == JUDGEMENT_SCHEMA["required"]
    assert parameters["properties"] == JUDGEMENT_SCHEMA["properties"]
    assert json.loads(completion.text) == JUDGEMENT
    assert (completion.input_tokens, completion.output_tokens, completion.usage_estimated) == (11, 7, False)
    assert without_schema == []
    copy = pickle.loads(pickle.dumps(load_llm(model(server=Server(JUDGEMENT)))))
    assert json.loads(asked(copy, way).text) == JUDGEMENT


@both
@ways
@pytest.mark.parametrize("thought", [False, True])
def test_without_functions_the_prompt_goes_alone_and_a_text_for_a_call_is_the_reply(model, way, thought):
    server = Server("plain")
    server.finish_reason = "content_filter"
    completion = asked(load_llm(model(server=server, thought=thought)), way)
    assert (completion.text, completion.cut_off, completion.input_tokens) == ("plain", "content_filter", 11)
    assert [bool(tools) for _, tools in server.requests] == [thought]


@both
@ways
def test_a_model_that_refuses_functions_is_asked_without_from_then_on(model, way):
    server = Server("refuse tools")
    llm = load_llm(model(server=server))
    assert [asked(llm, way).text for _ in range(2)] == ["refuse tools"] * 2
    assert [bool(tools) for _, tools in server.requests] == [True, False, False]


@both
@ways
def test_a_refused_key_is_no_refused_schema(model, way):
    server = Server(401)
    with pytest.raises(LLMAuthenticationError):
        asked(load_llm(model(server=server)), way)
    assert len(server.requests) == 1


@both
@ways
def test_a_blank_reply_is_an_error_with_its_tokens_and_only_the_next_call_has_no_schema(model, way):
    server = Server("", "plain")
    llm = load_llm(model(server=server))
    with pytest.raises(LLMResponseError) as error:
        asked(llm, way)
    assert (error.value.input_tokens, error.value.output_tokens) == (11, 7)
    assert [asked(llm, way).text for _ in range(2)] == ["plain"] * 2
    assert [bool(tools) for _, tools in server.requests] == [True, False, True]


@ways
def test_a_runnable_of_langchain_gets_the_prompt(way):
    assert asked(load_llm(RunnableLambda(lambda _: AIMessage("France"))), way).text == "France"
