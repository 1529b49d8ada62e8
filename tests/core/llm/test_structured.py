"""Replies in a schema, from models of both frameworks that call functions, over a local server."""

import asyncio
import json
import pickle

import openai
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

from precise_rag.errors import LLMAuthenticationError, LLMResponseError
from precise_rag.feedback import parse_judgement
from precise_rag.llm import load_llm
from precise_rag.prompts.judge import JUDGEMENT_SCHEMA
from precise_rag.types import Message
from support.chat_server import ChatServer, Reply, fails, says

PROMPT = (Message("system", "Judge it."), Message("user", "Where?"))
JUDGEMENT = {"reason": "right", "score": 9, "adjustment": 0}
TEXT = says('{"reason": "plain", "score": 3, "adjustment": 1}')


def calls(arguments: str) -> Reply:
    """A reply that calls the function."""
    reply = says("")
    function = {"name": "judgement", "arguments": arguments}
    called = [{"id": "t1", "type": "function", "function": function}]
    message = {"role": "assistant", "content": None, "tool_calls": called}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    assert isinstance(reply.body, dict)
    return Reply({**reply.body, "choices": [choice]})


def posted(url, request):
    with openai.OpenAI(api_key="none", base_url=url, max_retries=0) as client:
        return client.chat.completions.create(**request)


async def aposted(url, request):
    async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
        return await client.chat.completions.create(**request)


class LlamaTools(FunctionCallingLLM):
    """Calls functions on a server, as LlamaIndex's OpenAI class does."""

    url: str
    thought: bool = True

    @property
    def metadata(self):
        return LLMMetadata(model_name="llama-t", is_chat_model=True, is_function_calling_model=self.thought)

    def chat(self, messages, tools=(), **_):
        return self._response(posted(self.url, self._request(messages, tools)))

    async def achat(self, messages, tools=(), **_):
        return self._response(await aposted(self.url, self._request(messages, tools)))

    def complete(self, *_, **__):
        raise NotImplementedError

    acomplete = stream_chat = astream_chat = stream_complete = astream_complete = complete

    def _request(self, messages, tools):
        messages = [{"role": m.role.value, "content": m.content} for m in messages]
        return {"model": "m", "messages": messages, **({"tools": tools} if tools else {})}

    def _response(self, reply):
        message = reply.choices[0].message
        found = ChatMessage(role="assistant", content=message.content)
        found.additional_kwargs["tool_calls"] = message.tool_calls or []
        return ChatResponse(message=found, raw=reply)

    def _prepare_chat_with_tools(
        self,
        tools,
        user_msg=None,
        chat_history=None,
        verbose=False,
        allow_parallel_tool_calls=False,
        tool_required=False,
        **_,
    ):
        assert tool_required
        return {"messages": chat_history, "tools": [tool.metadata.to_openai_tool() for tool in tools]}

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **_):
        called = response.message.additional_kwargs["tool_calls"]
        return [
            ToolSelection(
                tool_id=c.id, tool_name=c.function.name, tool_kwargs=json.loads(c.function.arguments)
            )
            for c in called
        ]


class LangTools(BaseChatModel):
    """Calls functions on a server, as LangChain's ChatOpenAI does."""

    url: str
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
        return self._result(posted(self.url, self._request(messages, tools)))

    async def _agenerate(self, messages, stop=None, run_manager=None, tools=(), **_):
        return self._result(await aposted(self.url, self._request(messages, tools)))

    def _request(self, messages, tools):
        messages = convert_to_openai_messages(messages)
        return {"model": "m", "messages": messages, **({"tools": tools} if tools else {})}

    def _result(self, reply):
        message = reply.choices[0].message
        raw = [call.model_dump() for call in message.tool_calls or ()]
        usage = {
            "input_tokens": reply.usage.prompt_tokens,
            "output_tokens": reply.usage.completion_tokens,
            "total_tokens": reply.usage.total_tokens,
        }
        kwargs = {"tool_calls": raw} if raw else {}
        found = AIMessage(message.content or "", additional_kwargs=kwargs, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=found)])


def llama(url, **settings):
    return load_llm(LlamaTools(url=url, **settings))


def lang(url, **settings):
    return load_llm(LangTools(url=url, **settings))


def asked(llm, way):
    """The completion, by complete or by acomplete."""
    if way == "sync":
        return llm.complete(PROMPT, schema=JUDGEMENT_SCHEMA)
    return asyncio.run(llm.acomplete(PROMPT, schema=JUDGEMENT_SCHEMA))


both = pytest.mark.parametrize("make", [llama, lang])
ways = pytest.mark.parametrize("way", ["sync", "async"])


@both
@ways
def test_a_model_that_calls_functions_replies_in_the_schema_and_so_does_its_copy_by_pickle(make, way):
    with ChatServer([calls(json.dumps(JUDGEMENT)), says("France")]) as server:
        llm = pickle.loads(pickle.dumps(make(server.url)))
        completion = asked(llm, way)
        assert llm.complete(PROMPT).text == "France"
    request, without_schema = server.requests
    assert [m["role"] for m in request["messages"]] == ["system", "user"]
    [tool] = request["tools"]
    assert tool["function"]["name"] == "judgement"
    parameters = tool["function"]["parameters"]
    assert parameters["required"] == JUDGEMENT_SCHEMA["required"]
    assert parameters["properties"] == JUDGEMENT_SCHEMA["properties"]
    assert json.loads(completion.text) == JUDGEMENT
    assert (completion.input_tokens, completion.output_tokens, completion.usage_estimated) == (11, 7, False)
    assert "tools" not in without_schema


@both
@ways
@pytest.mark.parametrize("thought", [False, True])
def test_without_functions_the_prompt_goes_alone_and_a_text_in_place_of_a_call_is_the_reply(
    make, way, thought
):
    with ChatServer([TEXT]) as server:
        completion = asked(make(server.url, thought=thought), way)
    assert parse_judgement(completion.text).score == 3
    assert ["tools" in request for request in server.requests] == [thought]


@both
@ways
def test_a_server_that_refuses_functions_is_asked_without_from_then_on(make, way):
    def script(request):
        return fails(400, "tools are not supported") if "tools" in request else TEXT

    with ChatServer(script) as server:
        llm = make(server.url)
        texts = [asked(llm, way).text for _ in range(2)]
    assert [parse_judgement(text).score for text in texts] == [3, 3]
    assert ["tools" in request for request in server.requests] == [True, False, False]


@both
@ways
def test_a_refused_key_is_no_refused_schema(make, way):
    with ChatServer([fails(401)]) as server:
        with pytest.raises(LLMAuthenticationError):
            asked(make(server.url), way)
        assert len(server.requests) == 1


@both
@ways
def test_a_blank_reply_is_an_error_with_its_tokens_and_the_next_call_goes_without_the_schema(make, way):
    with ChatServer([says(""), TEXT]) as server:
        llm = make(server.url)
        with pytest.raises(LLMResponseError) as error:
            asked(llm, way)
        assert (error.value.input_tokens, error.value.output_tokens) == (11, 7)
        assert parse_judgement(asked(llm, way).text).score == 3
    assert ["tools" in request for request in server.requests] == [True, False]


@ways
@pytest.mark.parametrize(
    "model",
    [
        RunnableLambda(lambda _: AIMessage("France")),
        GenericFakeChatModel(messages=iter([AIMessage("France")] * 2)),
    ],
    ids=["runnable", "model"],
)
def test_langchain_models_without_structured_output_get_the_prompt(model, way):
    assert asked(load_llm(model), way).text == "France"
