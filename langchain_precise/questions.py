"""The inputs of a chain as questions of the core."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.prompt_values import PromptValue

from precise_rag.errors import InputError
from precise_rag.types import Message, check_query

_ROLES = {"human": "user", "ai": "assistant", "system": "system"}
_KEYS = ("input", "chat_history", "options", "filter")


def read_question(given: Any) -> dict[str, Any]:
    """Return the arguments of `PreciseRAG.answer` for a string, a mapping, or the messages of a chat.

    given: the question; `{"input": …}` with `chat_history`, `options` and `filter` if there are any;
    messages in any form that LangChain takes, of which the last is the question; or `{"messages": …}`.
    Raises InputError for anything else.
    """
    if isinstance(given, PromptValue):
        given = given.to_messages()
    if isinstance(given, Mapping) and set(given) == {"messages"}:
        given = given["messages"]
    if isinstance(given, Mapping):
        unknown = sorted(str(key) for key in given if key not in _KEYS)
        if "input" not in given or unknown:
            raise InputError(
                f'the input must have the key "input", and may have {", ".join(_KEYS[1:])}; '
                f"got {', '.join(map(str, given)) or 'no keys'}"
            )
        question = read_question(given["input"])
        before = _messages("chat_history", given.get("chat_history") or ())
        further = {"options": tuple(given.get("options") or ()), "filter": given.get("filter")}
        return question | {"history": [*question["history"], *before], **further}
    if isinstance(given, BaseMessage):
        given = [given]
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        messages = _messages("the input", given)
        if not messages or messages[-1].role != "user":
            raise InputError("the last message must be the user's question")
        return {"query": check_query(messages[-1].content), "history": messages[:-1]}
    return {"query": check_query(given), "history": []}


def _messages(name: str, given: Sequence[Any]) -> list[Message]:
    """Return the messages of people and models that have text; those of tools say nothing here."""
    try:
        converted = convert_to_messages(given)
    except (NotImplementedError, TypeError, ValueError) as error:
        raise InputError(
            f"{name} must hold messages, as LangChain takes them: {str(error).splitlines()[0]}"
        ) from error
    return [
        Message(_ROLES[message.type], str(message.text))  # type: ignore[arg-type]
        for message in converted
        if message.type in _ROLES and message.text
    ]
