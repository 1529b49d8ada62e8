"""Completions with their token counts, which are estimated where the server gives none."""

from collections.abc import Sequence
from typing import Any

from precise_rag.errors import LLMResponseError
from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.types import Completion, Message


def counted_completion(
    model: str,
    text: Any,
    messages: Sequence[Message],
    input_tokens: int | None = None,
    output_tokens: int | None = None,
) -> Completion:
    """A completion with the tokens that were given, else with estimates, marked.

    Raises LLMResponseError for a `text` that is no string or is empty: that is a failure, no answer.
    """
    if not isinstance(text, str):
        raise LLMResponseError(f"{model} gave a {type(text).__name__}; expected a string")
    if not text.strip():
        raise LLMResponseError(f"{model}: the completion is empty")
    estimated = input_tokens is None or output_tokens is None
    return Completion(
        text=text,
        model=model,
        input_tokens=estimate_prompt_tokens(messages) if input_tokens is None else input_tokens,
        output_tokens=estimate_tokens(text) if output_tokens is None else output_tokens,
        usage_estimated=estimated,
    )
