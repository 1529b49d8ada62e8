"""Conversations without a model: what they would ask, and what that would use."""

from collections.abc import Callable
from typing import Any, NamedTuple

from precise_rag.llm.session import Ask, Conversation, Work
from precise_rag.prompts import Prompt
from precise_rag.protocols import LLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import Bill
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Completion

REPLY_TOKENS = 300
"""The longest reply that estimates expect by default, in tokens."""


class Estimate(NamedTuple):
    """The least and the most that a question can use. Tokens are estimated."""

    least: Bill
    most: Bill


def bill_of(llm: LLM, prompt: Prompt, reply_tokens: int, prices: PriceTable, *, more: int = 0) -> Bill:
    """Return the bill of one call. more: tokens to add to those of `prompt`."""
    tokens = estimate_prompt_tokens(prompt.messages) + more
    return Bill(1, tokens, reply_tokens, prices.cost(llm.name, tokens, reply_tokens))


def rehearse(
    conversation: Conversation[Any],
    reply: Callable[[int], Completion],
    prices: PriceTable,
    *,
    most_rounds: int | None = None,
) -> Bill:
    """Return the bill of a conversation whose calls all get made-up replies.

    reply: gives the reply to all prompts of the n-th request, counted from 0.
    most_rounds: requests after which it ends; default: the conversation's own end.
    """
    bill = Bill()
    answer: Any = None
    n_asked = 0
    while most_rounds is None or n_asked < most_rounds:
        try:
            request = conversation.send(answer)
        except StopIteration:
            break
        if isinstance(request, Work):
            answer = request.run()
            continue
        assert isinstance(request, Ask)
        made_up = reply(n_asked)
        for prompt in request.prompts:
            bill = bill.plus(bill_of(request.llm, prompt, made_up.output_tokens, prices))
        answer = [made_up] * len(request.prompts)
        n_asked += bool(request.prompts)
    conversation.close()
    return bill
