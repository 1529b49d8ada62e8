import asyncio
from contextlib import aclosing

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.mock import MockLLM

from precise_rag.errors import ContextLengthError, LLMAuthenticationError
from precise_rag.llm import load_llm
from precise_rag.llm.framework import LangChainLLM, LlamaIndexLLM
from precise_rag.protocols import LLM, StreamingLLM
from precise_rag.types import Completion, Message

PROMPT = (Message("system", "Be brief."), Message("user", "Where?"))


class LlamaLLM(MockLLM):
    """Echoes the roles it saw, and reports usage as LlamaIndex's OpenAI class does."""

    @property
    def metadata(self):
        return LLMMetadata(model_name="llama-m", is_chat_model=True)

    def chat(self, messages, **_):
        roles = " ".join(message.role.value for message in messages)
        raw = {"usage": {"prompt_tokens": 5, "completion_tokens": 2}}
        return ChatResponse(message=ChatMessage(role="assistant", content=roles), raw=raw)

    async def achat(self, messages, **_):
        return self.chat(messages)

    def stream_chat(self, messages, **_):
        for delta in ("in ", "France"):
            yield ChatResponse(message=ChatMessage(role="assistant", content=delta), delta=delta)

    async def astream_chat(self, messages, **_):
        async def responses():
            for response in self.stream_chat(messages):
                yield response

        return responses()


def lang_model(*replies):
    return GenericFakeChatModel(messages=iter(replies))


def both(llm):
    """The completion by complete and by acomplete."""
    return llm.complete(PROMPT), asyncio.run(llm.acomplete(PROMPT))


def test_a_llamaindex_llm_keeps_roles_and_usage():
    llm = load_llm(LlamaLLM(max_tokens=None))
    assert isinstance(llm, LLM)
    assert both(llm) == (Completion("system user", "llama-m", 5, 2),) * 2


def test_a_llamaindex_llm_that_only_completes_prompts_works_too():
    completion = load_llm(MockLLM(max_tokens=3)).complete(PROMPT)
    assert completion.text == "text text text"
    assert completion.usage_estimated


async def test_a_llamaindex_llm_streams():
    llm = load_llm(LlamaLLM(max_tokens=None))
    assert isinstance(llm, StreamingLLM)
    *pieces, completion = llm.stream(PROMPT)
    assert pieces == ["in ", "France"]
    assert completion.text == "in France"
    assert [item async for item in llm.astream(PROMPT)] == [*pieces, completion]


def test_a_langchain_model_keeps_usage():
    usage = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    message = AIMessage("France", usage_metadata=usage)
    llm = load_llm(lang_model(message, message))
    assert isinstance(llm, LLM)
    assert both(llm) == (Completion("France", "GenericFakeChatModel", 9, 1),) * 2


async def test_a_langchain_model_streams():
    llm = load_llm(lang_model(AIMessage("in France"), AIMessage("in France")))
    assert isinstance(llm, LangChainLLM)
    *pieces, completion = llm.stream(PROMPT)
    assert pieces == ["in", " ", "France"]
    assert completion.text == "in France"
    async with aclosing(llm.astream(PROMPT)) as items:
        assert [item async for item in items] == [*pieces, completion]


def test_content_blocks_are_joined():
    message = AIMessage([{"type": "text", "text": "in "}, {"type": "text", "text": "France"}])
    assert load_llm(lang_model(message)).complete(PROMPT).text == "in France"


def test_langchain_context_reaches_the_model_by_itself():
    class Handler(BaseCallbackHandler):
        seen = 0

        def on_chat_model_start(self, *args, **kwargs):
            Handler.seen += 1

    llm = load_llm(lang_model(AIMessage("France")))
    chain = RunnableLambda(lambda _: llm.complete(PROMPT).text)
    assert chain.invoke("x", config={"callbacks": [Handler()]}) == "France"
    assert Handler.seen == 1


@pytest.mark.parametrize(
    ("attributes", "message", "error"),
    [
        ({"status_code": 401}, "nope", LLMAuthenticationError),
        ({}, "This model's maximum context length is 8192 tokens", ContextLengthError),
    ],
)
def test_a_framework_models_errors_are_recognised_by_shape(attributes, message, error):
    class Broken(CustomLLM):
        @property
        def metadata(self):
            return LLMMetadata(model_name="b")

        def complete(self, *args, **kwargs):
            raise type("ProviderError", (Exception,), attributes)(message)

        def stream_complete(self, *args, **kwargs):
            raise NotImplementedError

    with pytest.raises(error, match=r"^b: "):
        load_llm(Broken()).complete(PROMPT)


def test_a_langchain_reply_that_is_cut_off_says_so():
    cut = AIMessage("Keeper 3 is", response_metadata={"finish_reason": "length"})
    assert [c.cut_off for c in both(load_llm(lang_model(cut, cut)))] == ["length", "length"]
    whole = AIMessage("Keeper 3.", response_metadata={"stop_reason": "end_turn"})
    assert load_llm(lang_model(whole)).complete(PROMPT).cut_off == ""


async def test_a_langchain_stream_that_is_cut_off_says_so():
    class Streams(GenericFakeChatModel):
        def _stream(self, *_, **__):
            for text, metadata in (("Keeper ", {}), ("3 is", {"finish_reason": "length"}), ("", {})):
                yield ChatGenerationChunk(message=AIMessageChunk(content=text, response_metadata=metadata))

    llm = LangChainLLM(Streams(messages=iter(())))
    *_, completion = llm.stream(PROMPT)
    assert completion.cut_off == "length"
    *_, completion = [item async for item in llm.astream(PROMPT)]
    assert (completion.text, completion.cut_off) == ("Keeper 3 is", "length")


class CutLLM(LlamaLLM):
    """Reports the finish reason as LlamaIndex's OpenAI class does, in a stream not in the last event."""

    def chat(self, messages, **_):
        raw = {"choices": [{"finish_reason": "content_filter"}]}
        return ChatResponse(message=ChatMessage(role="assistant", content="Keeper"), raw=raw)

    def stream_chat(self, messages, **_):
        for delta, raw in (("in ", {"choices": [{"finish_reason": "length"}]}), ("", {"choices": []})):
            message = ChatMessage(role="assistant", content=delta)
            yield ChatResponse(message=message, delta=delta, raw=raw)


async def test_a_llamaindex_reply_that_is_cut_off_says_so():
    llm = LlamaIndexLLM(CutLLM(max_tokens=None))
    assert llm.complete(PROMPT).cut_off == (await llm.acomplete(PROMPT)).cut_off == "content_filter"
    *_, completion = llm.stream(PROMPT)
    assert completion.cut_off == "length"
    *_, completion = [item async for item in llm.astream(PROMPT)]
    assert completion.cut_off == "length"
