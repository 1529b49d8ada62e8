"""What a server reports of its reply: its tokens, or an estimate of them, and why it ended."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from precise_rag._data import by_word, packaged_toml
from precise_rag.errors import ContentFilterError, EmptyReplyError, LLMError, LLMResponseError
from precise_rag.redaction import redacted
from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens, readable_texts
from precise_rag.types import Completion, CutOff, Message

_REASONS: Mapping[str, CutOff] = by_word(packaged_toml("llm/finish_reasons.toml"))
_FIELDS = ("finish_reason", "stop_reason", "done_reason", "finishReason")
_MOST_TOKENS = 10**9
_MOST_CHARACTERS = 10**7
_MODEL_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")


def counted_completion(
    model: str,
    text: Any,
    messages: Sequence[Message],
    input_tokens: Any = None,
    output_tokens: Any = None,
    cut_off: CutOff = "",
) -> Completion:
    """Build the Completion of a reply, with its token counts.

    model: name of the model that answered. messages: the prompt.
    input_tokens, output_tokens: as the server reported them. A count that is None, or is not a whole
        number from 0 to a billion, is estimated, and `usage_estimated` is set.
    cut_off: why the reply ends early, if it does.
    Raises ContentFilterError if the filter left no text, EmptyReplyError if `text` is blank, and
    LLMResponseError if it is no string or has more than ten million characters. The error carries the
    tokens of the call.
    """
    n_input, n_output = _count(input_tokens), _count(output_tokens)
    sent = estimate_prompt_tokens(messages) if n_input is None else n_input
    if (fault := _fault(model, text, cut_off)) is not None:
        fault.input_tokens, fault.output_tokens = sent, n_output or 0
        raise fault
    return Completion(
        text=redacted(text),
        model=model,
        input_tokens=sent,
        output_tokens=estimate_tokens(text) if n_output is None else n_output,
        usage_estimated=n_input is None or n_output is None,
        cut_off=cut_off,
    )


def _fault(model: str, text: Any, cut_off: CutOff) -> LLMError | None:
    """Why the reply `text` cannot be used; None if it can."""
    if not isinstance(text, str):
        return LLMResponseError(f"{model}: the completion must be a string, got {type(text).__name__}")
    if len(text) > _MOST_CHARACTERS:
        return LLMResponseError(f"{model}: the completion is longer than {_MOST_CHARACTERS:,} characters")
    if text.strip():
        return None
    if cut_off == "content_filter":
        return ContentFilterError(f"{model}: the content filter left no text of the completion")
    ended = f" (finish reason: {cut_off})" if cut_off else ""
    return EmptyReplyError(f"{model}: the completion is empty{ended}")


def checked_completion(completion: Any, name: str, messages: Sequence[Message]) -> Completion:
    """Return the completion of any model, once its values are known to be of the right kind.

    name: the model's name. messages: the prompt.
    Invalid token counts are replaced by estimates. Raises LLMResponseError if it is not a Completion, and
    as `counted_completion` if its text is blank or no string.
    """
    if not isinstance(completion, Completion):
        raise LLMResponseError(
            f"{name}: the model must return a Completion, got {type(completion).__name__}; "
            "pass a function to load_llm if it returns a text"
        )
    counts = completion.input_tokens, completion.output_tokens
    if None not in map(_count, counts) and isinstance(completion.text, str) and completion.text.strip():
        return completion
    model = model_name(completion.model, name)
    return counted_completion(model, completion.text, messages, *counts, cut_off=completion.cut_off)


def cut_off(reason: Any) -> CutOff:
    """Return why a reply was cut off, by its finish reason, such as "MAX_TOKENS"; "" if it was not."""
    name = getattr(reason, "name", reason)
    return _REASONS.get(name.strip().lower(), "") if isinstance(name, str) else ""


def reported_cut_off(*places: Any) -> CutOff:
    """Return why a reply was cut off, from the first mapping or object whose finish reason says so."""
    reasons = (cut_off(read(place, field)) for place in places for field in _FIELDS)
    return next(filter(None, reasons), "")


def read(value: Any, name: str) -> Any:
    """Return an item of a mapping or an attribute of an object; None if it is missing."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def readable_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with U+FFFD for each lone surrogate, which no server accepts."""
    contents = readable_texts([message.content for message in messages])
    return [Message(message.role, content) for message, content in zip(messages, contents, strict=True)]


def model_name(reported: Any, requested: str) -> str:
    """Return the name of the model that a server reported, or the requested one if it is not a name."""
    return redacted(reported) if isinstance(reported, str) and _MODEL_NAME.fullmatch(reported) else requested


def _count(value: Any) -> int | None:
    """A token count; None if `value` is not a whole number from 0 to a billion."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value <= _MOST_TOKENS and value == int(value) else None
