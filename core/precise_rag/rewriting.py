"""A question in the words of the documents, searched for beside the question itself.

Source: ChunkRAG, section 3, query rewriting. Differs: the original is kept and both are searched, so
that a bad rewrite costs nothing that the original finds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from precise_rag.errors import LLMError
from precise_rag.llm.budget import Budget
from precise_rag.llm.calls import Calls, Reply
from precise_rag.llm.wrap import load_llm
from precise_rag.prompts import Prompt, rewrite_prompt
from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.trace import Bill, Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Candidate, best_first

_RANK_OFFSET = 60
_MAX_LENGTH = 400


class QueryRewriter:
    """Rewrites a question for search by a language model.

    llm: any model that `load_llm` takes. budget: limits for each question. A rewrite that fails, or
    is no single short line, is left out, with a note in the trace: the question itself is always
    searched.
    """

    def __init__(self, llm: Any, *, budget: Budget | None = None, prices: PriceTable | None = None) -> None:
        self.llm = load_llm(llm)
        self.budget = budget or Budget()
        self.prices = prices or PriceTable.load()

    def queries(self, question: str, *, trace: Trace | None = None) -> tuple[str, ...]:
        """The question, and the rewritten one if there is one."""
        trace = trace or Trace(question)
        replies = self._calls(trace).ask(_prompts(question))
        return _queries(question, replies, trace)

    async def aqueries(self, question: str, *, trace: Trace | None = None) -> tuple[str, ...]:
        """The same without blocking the event loop."""
        trace = trace or Trace(question)
        replies = await self._calls(trace).aask(_prompts(question))
        return _queries(question, replies, trace)

    def estimate(self, question: str) -> Bill:
        """What rewriting would take. Calls no model."""
        n_input = estimate_prompt_tokens(rewrite_prompt(question).messages)
        n_output = estimate_tokens(question)
        return Bill(1, n_input, n_output, self.prices.cost(self.llm.name, n_input, n_output))

    def _calls(self, trace: Trace) -> Calls:
        return Calls(
            role="rewrite",
            llm=self.llm,
            spending=self.budget.start(),
            prices=self.prices,
            trace=trace,
            max_concurrency=1,
        )


def _prompts(question: str) -> list[Prompt]:
    """What to ask the model; nothing about a blank question."""
    return [rewrite_prompt(question)] if question.strip() else []


def _queries(question: str, replies: Sequence[Reply], trace: Trace) -> tuple[str, ...]:
    if not replies:
        return (question,)
    (reply,) = replies
    if isinstance(reply, LLMError):
        trace.notes.append(f"the question was not rewritten: {reply}")
        return (question,)
    rewritten = reply.text.strip().strip("\"'“”`").strip()
    if not rewritten or "\n" in rewritten or len(rewritten) > _MAX_LENGTH:
        trace.notes.append("the question was not rewritten: the model gave no single short line")
        return (question,)
    return (question,) if rewritten.casefold() == question.strip().casefold() else (question, rewritten)


def merge_searches(found: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """The candidates of several searches as one list, best first, each once.

    The score is the sum of `1 / (60 + rank)` over the searches (reciprocal rank fusion; Cormack,
    Clarke and Buettcher, SIGIR 2009), on the "rank" scale. Raw scores are those of the first search
    that found the candidate. One search alone comes back as it is.
    """
    searches = [best_first(candidates) for candidates in found]
    if len(searches) == 1:
        return searches[0]
    first: dict[str, Candidate] = {}
    fused: dict[str, float] = {}
    for candidates in searches:
        for rank, candidate in enumerate(candidates, start=1):
            first.setdefault(candidate.id, candidate)
            fused[candidate.id] = fused.get(candidate.id, 0.0) + 1.0 / (_RANK_OFFSET + rank)
    return best_first(replace(c, score=fused[key], score_scale="rank") for key, c in first.items())
