import asyncio

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
        usage = {"prompt_tokens": 5, "completion_tokens": 2}
        raw = {"usage": usage, "choices": [{"finish_reason": "content_filter"}]}
        return ChatResponse(message=ChatMessage(role="assistant", content=roles), raw=raw)

    async def achat(self, messages, **_):
        return self.chat(messages)

    def stream_chat(self, messages, **_):
        for delta, reason in (("in ", None), ("France", "length"), ("", None)):
            message = ChatMessage(role="assistant", content=delta)
            choices = [{"finish_reason": reason}] if reason else []
            yield ChatResponse(message=message, delta=delta, raw={"choices": choices})

    async def astream_chat(self, messages, **_):
        async def responses():
            for response in self.stream_chat(messages):
                yield response

        return responses()


class LangStream(GenericFakeChatModel):
    """Says why it was cut off in the last event but one."""

    def _stream(self, *_, **__):
        for text, metadata in (("in ", {}), ("France", {"finish_reason": "length"}), ("", {})):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text, response_metadata=metadata))


def lang_model(*replies):
    return GenericFakeChatModel(messages=iter(replies))


def both(llm):
    """The completion by complete and by acomplete."""
    return llm.complete(PROMPT), asyncio.run(llm.acomplete(PROMPT))


def test_a_llamaindex_llm_keeps_roles_usage_and_why_it_was_cut_off():
    llm = load_llm(LlamaLLM(max_tokens=None))
    assert isinstance(llm, LLM)
    assert both(llm) == (Completion("system user", "llama-m", 5, 2, cut_off="content_filter"),) * 2


def test_a_llamaindex_llm_that_only_completes_prompts_works_too():
    completion = load_llm(MockLLM(max_tokens=3)).complete(PROMPT)
    assert completion.text == "text text text"
    assert completion.usage_estimated


@pytest.mark.parametrize("model", [LlamaLLM(max_tokens=None), LangStream(messages=iter(()))])
async def test_a_stream_gives_pieces_and_then_the_completion_with_why_it_was_cut_off(model):
    llm = load_llm(model)
    assert isinstance(llm, StreamingLLM)
    *pieces, completion = llm.stream(PROMPT)
    assert [piece for piece in pieces if piece] == ["in ", "France"]
    assert (completion.text, completion.cut_off) == ("in France", "length")
    assert [item async for item in llm.astream(PROMPT)] == [*pieces, completion]


@pytest.mark.parametrize(
    ("metadata", "cut_off"), [({"finish_reason": "length"}, "length"), ({"stop_reason": "end_turn"}, "")]
)
def test_a_langchain_model_keeps_its_blocks_usage_and_why_it_was_cut_off(metadata, cut_off):
    usage = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    blocks = [{"type": "text", "text": "Fra"}, {"type": "text", "text": "nce"}]
    message = AIMessage(blocks, usage_metadata=usage, response_metadata=metadata)
    llm = load_llm(lang_model(message, message))
    assert isinstance(llm, LLM)
    assert both(llm) == (Completion("France", "GenericFakeChatModel", 9, 1, cut_off=cut_off),) * 2


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
