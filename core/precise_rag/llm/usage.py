"""Token usage: what the server reported or an estimate of it, the budget, and the record of each call."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from precise_rag.errors import LLMError, LLMResponseError
from precise_rag.llm.budget import Spending
from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.trace import CallRecord, Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Completion, Message


def counted_completion(
    model: str,
    text: Any,
    messages: Sequence[Message],
    input_tokens: int | None = None,
    output_tokens: int | None = None,
) -> Completion:
    """Build a Completion with its token counts.

    model: name of the model that answered.
    text: the reply.
    messages: the prompt; its tokens are estimated if `input_tokens` is None.
    input_tokens, output_tokens: as the server reported them; None: estimate, and set `usage_estimated`.
    Raises LLMResponseError if `text` is not a string, or is blank.
    """
    if not isinstance(text, str):
        raise LLMResponseError(f"{model}: the completion must be a string, got {type(text).__name__}")
    if not text.strip():
        raise LLMResponseError(f"{model}: the completion is empty")
    return Completion(
        text=text,
        model=model,
        input_tokens=estimate_prompt_tokens(messages) if input_tokens is None else input_tokens,
        output_tokens=estimate_tokens(text) if output_tokens is None else output_tokens,
        usage_estimated=input_tokens is None or output_tokens is None,
    )


def record_call(
    record: CallRecord,
    outcome: Completion | LLMError,
    *,
    spending: Spending,
    prices: PriceTable,
    trace: Trace,
) -> None:
    """Count a call against the budget and add it to the trace.

    record: role, prompt, requested model and milliseconds of the call; the rest is filled in here.
    outcome: the reply, or the error; a failed call counts as one call with no tokens.
    prices: the price is that of the model that answered; if it is not listed, of the requested one.
    """
    if isinstance(outcome, LLMError):
        spending.add(0, None)
        trace.add(replace(record, error=f"{type(outcome).__name__}: {outcome}"))
        return
    tokens = outcome.input_tokens, outcome.output_tokens
    cost = prices.cost(outcome.model, *tokens)
    if cost is None:
        cost = prices.cost(record.model, *tokens)
    spending.add(sum(tokens), cost)
    trace.add(
        replace(
            record,
            model=outcome.model or record.model,
            input_tokens=outcome.input_tokens,
            output_tokens=outcome.output_tokens,
            usage_estimated=outcome.usage_estimated,
            cost=cost,
            text=outcome.text,
        )
    )
