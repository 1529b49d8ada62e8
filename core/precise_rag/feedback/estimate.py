"""Estimate what answering a question costs, without calling a model."""

from collections.abc import Sequence
from typing import NamedTuple

from precise_rag.checks import check_number
from precise_rag.feedback.loop import FeedbackLoop, SelectAt
from precise_rag.prompts import Prompt
from precise_rag.protocols import LLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import Bill
from precise_rag.types import Selection


class Estimate(NamedTuple):
    """The least and the most that a question can use. Tokens are estimated."""

    least: Bill
    most: Bill


def estimate_cost(
    loop: FeedbackLoop,
    question: str,
    select: SelectAt,
    *,
    options: Sequence[str] = (),
    answer_tokens: int = 150,
    judgement_tokens: int = 50,
) -> Estimate:
    """Estimate the bill if the first draft is accepted, and if every round asks for more context.

    loop: the loop whose prompts and prices are used.
    question, select, options: as for `FeedbackLoop.run`.
    answer_tokens: assumed length of a draft.
    judgement_tokens: assumed length of a judgement.
    Calls that fail and are made again in another way are not counted.
    """
    for name, tokens in (("answer_tokens", answer_tokens), ("judgement_tokens", judgement_tokens)):
        check_number(name, tokens, least=0, whole=True)

    def turn(selection: Selection, judgements: int) -> Bill:
        draft = loop.wording.answer(question, selection.kept, options)
        verdict = loop.wording.judge(question, selection.kept, "", options)
        bill = _bill(loop, loop.llm, draft, answer_tokens)
        for _ in range(judgements):
            judged = _bill(loop, loop.judge, verdict, judgement_tokens, more=answer_tokens)
            bill = bill.plus(judged)
        return bill

    controller = loop.controller
    first = select(controller.min_k)
    if not first.kept:
        return Estimate(Bill(), Bill())
    least = most = turn(first, min(controller.max_rounds, 1))
    for more in range(1, controller.max_rounds):
        most = most.plus(turn(select(controller.min_k + more), 1))
    return Estimate(least, most)


def _bill(loop: FeedbackLoop, llm: LLM, prompt: Prompt, reply_tokens: int, *, more: int = 0) -> Bill:
    tokens = estimate_prompt_tokens(prompt.messages) + more
    return Bill(1, tokens, reply_tokens, loop.prices.cost(llm.name, tokens, reply_tokens))
