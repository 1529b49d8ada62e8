"""What every call leaves behind: its use counted against the budget, and its record in the trace."""

from dataclasses import replace

from precise_rag.errors import LLMError
from precise_rag.llm.budget import Spending
from precise_rag.trace import CallRecord, Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Completion


def settle(
    record: CallRecord, reply: Completion | LLMError, *, spending: Spending, prices: PriceTable, trace: Trace
) -> None:
    """Count a call and put it on record; a failed one counts as a call, with what is known of it.

    record: role, prompt, model and milliseconds; the rest is read from the reply. The price is that
    of the model which answered, else of the one that was asked.
    """
    if isinstance(reply, LLMError):
        spending.add(0, None)
        trace.add(replace(record, error=f"{type(reply).__name__}: {reply}"))
        return
    tokens = reply.input_tokens, reply.output_tokens
    cost = prices.cost(reply.model, *tokens)
    if cost is None:
        cost = prices.cost(record.model, *tokens)
    spending.add(sum(tokens), cost)
    trace.add(
        replace(
            record,
            model=reply.model or record.model,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            usage_estimated=reply.usage_estimated,
            cost=cost,
            text=reply.text,
        )
    )
