"""A language model that counts calls and tokens."""

from precise_rag.evaluation.runs.metered import MeteredLLM
from precise_rag.testing import ScriptedLLM
from precise_rag.trace import Bill
from precise_rag.types import Message


async def test_calls_and_tokens_are_counted_until_taken() -> None:
    metered = MeteredLLM(ScriptedLLM(["one", "two"], name="m"))
    assert metered.name == "m"
    first = metered.complete([Message("user", "What?")])
    second = await metered.acomplete([Message("user", "And then?")])
    inputs = first.input_tokens + second.input_tokens
    assert metered.take() == Bill(2, inputs, first.output_tokens + second.output_tokens, None)
    assert metered.take().calls == 0
