import numpy as np
import pytest

from precise_rag.protocols import Encoder, StreamingLLM
from precise_rag.testing import HashEncoder, ScriptedLLM
from precise_rag.types import Completion, Message

PROMPT = [Message("system", "Be brief."), Message("user", "Hello?")]


def test_replies_are_returned_in_order_calls_recorded_and_after_the_last_reply_the_prompt_is_told() -> None:
    llm = ScriptedLLM(["one", Completion("two", "a-model", 3, 4)])
    assert isinstance(llm, StreamingLLM)
    first = llm.complete(PROMPT, schema={"type": "object"})
    assert (first.text, first.model, first.usage_estimated) == ("one", "scripted", True)
    assert llm.complete(PROMPT) == Completion("two", "a-model", 3, 4)
    assert llm.calls[0].messages == tuple(PROMPT)
    assert [call.schema for call in llm.calls] == [{"type": "object"}, None]
    assert llm.calls[0].text == "Be brief.\n\nHello?"
    with pytest.raises(AssertionError, match=r"no reply left(.|\n)*Be brief"):
        llm.complete(PROMPT)


async def test_replies_can_be_awaited_and_streamed() -> None:
    llm = ScriptedLLM(["one", "two words ", "three  more words"])
    assert (await llm.acomplete(PROMPT)).text == "one"
    *words, completion = llm.stream(PROMPT)
    assert words == ["two ", "words "]
    assert isinstance(completion, Completion)
    assert completion.text == "two words "
    *words, completion = [piece async for piece in llm.astream(PROMPT)]
    assert words == ["three  ", "more ", "words"]


def test_a_hash_encoder_is_an_encoder() -> None:
    encoder = HashEncoder(64)
    assert isinstance(encoder, Encoder)
    assert (encoder.name, encoder.dimension) == ("hash-64", 64)
    assert encoder.encode([]).shape == (0, 64)
    assert encoder.count_tokens(["", "one, two"]).tolist() == [0, 2]
    documents = encoder.encode(["b", "a"])
    np.testing.assert_allclose(encoder.encode_queries(["b", "a"]), documents, rtol=1e-6)
    assert encoder.calls == ["b", "a"], "queries are not recorded"


def test_texts_are_compared_by_shared_words() -> None:
    cat, kitten, rates = HashEncoder().encode(["The cat sat.", "the CAT ran", "interest rates"])
    assert cat @ kitten == pytest.approx(2 / 3)
    assert cat @ rates == pytest.approx(0, abs=0.34)
    np.testing.assert_allclose(np.linalg.norm(HashEncoder().encode(["", "?!"]), axis=1), 1, rtol=1e-6)
