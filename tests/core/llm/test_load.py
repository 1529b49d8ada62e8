import asyncio
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.errors import InputError, LLMError
from precise_rag.llm import OpenAIChat, load_llm
from precise_rag.llm.json_objects import json_objects
from precise_rag.testing import ScriptedLLM
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Message

PROMPT = (Message("system", "Be brief."), Message("user", "Where?"))


def prompt_to_text(prompt: str) -> str:
    return prompt.replace("\n\n", " | ")


def messages_to_text(messages: Sequence[Message]) -> str:
    return " ".join(message.role for message in messages)


def named_messages(messages):
    return messages.replace("\n\n", " | ")


async def async_function(prompt: str) -> str:
    return "async"


class Callable:
    def __call__(self, prompt):
        return "called"


@pytest.mark.parametrize(
    ("function", "name", "text"),
    [
        (prompt_to_text, "prompt_to_text", "Be brief. | Where?"),
        (messages_to_text, "messages_to_text", "system user"),
        (named_messages, "named_messages", "Be brief. | Where?"),
        (async_function, "async_function", "async"),
        (Callable(), "Callable", "called"),
    ],
)
def test_a_function_gets_a_prompt_or_messages_and_gives_a_completion(function, name, text):
    llm = load_llm(function)
    assert llm.name == name
    for completion in (llm.complete(PROMPT), asyncio.run(llm.acomplete(PROMPT))):
        assert (completion.text, completion.usage_estimated) == (text, True)
        assert completion.output_tokens == estimate_tokens(text)


async def test_an_async_function_in_a_running_loop_and_an_exception_are_one_error():
    with pytest.raises(InputError, match="await"):
        load_llm(async_function).complete(PROMPT)

    def broken(prompt):
        raise KeyError("x")

    with pytest.raises(LLMError, match="broken: KeyError: 'x'") as raised:
        load_llm(broken).complete(PROMPT)
    assert isinstance(raised.value.__cause__, KeyError)


def test_an_llm_is_returned_unchanged_a_name_is_an_openai_model_and_other_things_are_refused():
    scripted = ScriptedLLM(["x"])
    assert load_llm(scripted) is scripted
    named = load_llm("gpt-4o-mini")
    assert isinstance(named, OpenAIChat)
    assert named.name == "gpt-4o-mini"
    for thing in (3, None, object(), dict):
        with pytest.raises(InputError, match="llm must be the name of a model"):
            load_llm(thing)


def test_an_object_or_an_item_of_a_named_list_counts_and_not_what_stands_in_it_also_if_cut_off() -> None:
    own = {"id": 1, "quoted": {"id": 2}}
    text = f'First {json.dumps(own)} and then {{"e": [{{"f": 3}}]}}.'
    assert json_objects(text)[0] == [own, {"f": 3}]
    for broken in ('{"a": 1, "b": {"id": 2}', '{"a": oops, "b": {"id": 2}}', '{"a": "}", "b": {"id": 2}'):
        assert json_objects(broken)[0] == []
    assert json_objects('{"score": 2, "score": 9} {"n": [{"id": 1, "id": 1.5}]}')[0] == []
    assert json_objects('{"a": oops} {"b": {"c": {"id": 2}}}')[0] == [{"id": 2}]

    for text in ('{"scores": [{"id": 1}, {"id": 2}], "n": 2}', '{"scores": [{"id": 1}, {"id": 2}, {"id":'):
        assert json_objects(text, "scores")[0] == [{"id": 1}, {"id": 2}]
    assert json_objects('{"scores": [{"id": 1}, {"id": 2, "quoted": {"id": 3}', "scores")[0] == [{"id": 1}]
    for text in ("", "{", "{}}{", "[1, 2]", "{'a': 1}", '{"score": 1' + "0" * 9_000 + "}"):
        assert all(found == {} for found in json_objects(text)[0])


@given(st.text(st.characters(exclude_characters="{}")), st.dictionaries(st.text(), st.integers()))
def test_an_object_is_found_in_any_prose(prose: str, value: dict[str, int]) -> None:
    assert json_objects(f"{prose}{json.dumps(value)}{prose}")[0] == [value]


@pytest.mark.parametrize("text", ['{"a":', '[{"a":[', '{"a":{"b":1},', '{"a":"\\"{', '{"l":[{"b":1},,', "{"])
def test_a_reply_of_braces_takes_no_long_time(text: str) -> None:
    assert all(found == {"b": 1} for found in json_objects(text * 300_000, "l")[0])
