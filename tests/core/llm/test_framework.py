import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.mock import MockLLM

from precise_rag.errors import ContextLengthError
from precise_rag.llm import load_llm
from precise_rag.protocols import StreamingLLM
from precise_rag.types import Message

PROMPT = (Message("system", "Be brief."), Message("user", "Where?"))


class LlamaLLM(MockLLM):
    """Says why it was cut off in the last event but one."""

    max_retries: int = 4

    @property
    def metadata(self):
        return LLMMetadata(model_name="llama-m", is_chat_model=True)

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
    """The same in LangChain."""

    max_retries: int = 4

    def _stream(self, *_, **__):
        for text, metadata in (("in ", {}), ("France", {"finish_reason": "length"}), ("", {})):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text, response_metadata=metadata))


def test_a_llamaindex_llm_that_only_completes_prompts_works_too():
    completion = load_llm(MockLLM(max_tokens=3)).complete(PROMPT)
    assert completion.text == "text text text"
    assert completion.usage_estimated


@pytest.mark.parametrize("model", [LlamaLLM(max_tokens=None), LangStream(messages=iter(()))])
async def test_a_stream_gives_pieces_and_then_the_completion_with_why_it_was_cut_off(model):
    llm = load_llm(model)
    assert getattr(llm, "max_retries", None) == 4
    assert isinstance(llm, StreamingLLM)
    *pieces, completion = llm.stream(PROMPT)
    assert [piece for piece in pieces if piece] == ["in ", "France"]
    assert (completion.text, completion.cut_off) == ("in France", "length")
    assert [item async for item in llm.astream(PROMPT)] == [*pieces, completion]


def test_a_framework_models_errors_are_recognised_by_what_they_say():
    class Broken(MockLLM):
        def complete(self, *args, **kwargs):
            raise RuntimeError("This model's maximum context length is 8192 tokens")

    with pytest.raises(ContextLengthError, match=r"^unknown: "):
        load_llm(Broken(max_tokens=None)).complete(PROMPT)
