"""Replies in a JSON schema from LlamaIndex and LangChain models that can give them.

LlamaIndex models that call functions get the schema as the one function that they must call; LangChain
models, through `with_structured_output`. All others get the prompt alone, which asks for the JSON too.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from precise_rag._extras import require
from precise_rag.errors import LLMError, LLMResponseError, PreciseRagError
from precise_rag.llm.failures import translate
from precise_rag.llm.finish import read
from precise_rag.types import Completion


class SchemaCalls:
    """Asks a model with a schema, and without it once the model has refused one.

    name: the model's name. refused: (attribute) whether the model has refused a schema.

    A reply that is blank is an error with its tokens, as always; the next call goes without the schema.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.refused = False

    def ask(self, structured: Callable[[], Completion], plain: Callable[[], Completion]) -> Completion:
        """Return the reply of `structured`, or of `plain` if the model refuses the schema."""
        if self.refused:
            return plain()
        try:
            return structured()
        except Exception as error:
            if not self._may_refuse(error):
                raise
        completion = plain()
        self.refused = True
        return completion

    async def aask(
        self, structured: Callable[[], Awaitable[Completion]], plain: Callable[[], Awaitable[Completion]]
    ) -> Completion:
        """`ask` without blocking the event loop."""
        if self.refused:
            return await plain()
        try:
            return await structured()
        except Exception as error:
            if not self._may_refuse(error):
                raise
        completion = await plain()
        self.refused = True
        return completion

    def _may_refuse(self, error: Exception) -> bool:
        """Whether the schema may be why the model failed: not for keys, limits, filters and connections."""
        self.refused |= isinstance(error, LLMResponseError)
        if isinstance(error, PreciseRagError | AssertionError):
            return False
        return type(translate(error, self.name)) in (LLMError, LLMResponseError)


def reply_tool(llm: Any, schema: Mapping[str, Any] | None) -> Any | None:
    """Return the LlamaIndex tool whose arguments are the reply; None if the model calls no functions."""
    calls = read(llm.metadata, "is_function_calling_model") and hasattr(llm, "chat_with_tools")
    if schema is None or not calls:
        return None
    pydantic = require("pydantic", extra="llamaindex")
    settings = pydantic.ConfigDict(extra="allow", json_schema_extra=lambda made: made.update(schema))
    name = str(schema.get("title", "reply"))
    return require("llama_index.core.tools", extra="llamaindex").FunctionTool.from_defaults(
        fn=lambda **reply: reply,
        name=name,
        description="Takes the reply.",
        fn_schema=pydantic.create_model(name, __config__=settings),
    )


def tool_reply(llm: Any, response: Any) -> str | None:
    """Return the arguments of the tool that a LlamaIndex model called, as JSON; without a call, its text."""
    with suppress(Exception):  # every model reads its own calls, and some fail on a broken one
        for call in llm.get_tool_calls_from_response(response, error_on_no_tool_call=False):
            return json.dumps(call.tool_kwargs, ensure_ascii=False)
    text: str | None = response.message.content
    return text


def structured_model(model: Any, schema: Mapping[str, Any] | None) -> Any | None:
    """Return the LangChain runnable that replies in the schema; None if the model has none."""
    if schema is not None and hasattr(model, "with_structured_output"):
        with suppress(Exception):  # NotImplementedError, or whatever an integration has against the schema
            return model.with_structured_output({"title": "reply", **schema}, include_raw=True)
    return None
