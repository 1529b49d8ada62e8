"""Rewrite a question in the words of the documents, and merge the results of both searches.

Source: ChunkRAG, section 3, query rewriting. Differs: the original question is searched, too, so a bad
rewrite loses nothing that the original finds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from precise_rag._processes import Portable
from precise_rag.errors import LLMError
from precise_rag.llm import Budget, load_llm
from precise_rag.llm.calls import CallOutcome, Calls
from precise_rag.prompts import Prompt, rewrite_prompt
from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.trace import Bill, Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Candidate, best_first

_RANK_OFFSET = 60
_MAX_LENGTH = 400


class QueryRewriter(Portable):
    """Rewrites questions for search with a language model.

    llm: any model that `load_llm` accepts.
    budget: limits for each question; default: none.
    prices: prices of the models; default: the packaged table.

    A rewrite that fails, or that is not a single short line, is left out with a note in the trace.
    """

    def __init__(self, llm: Any, *, budget: Budget | None = None, prices: PriceTable | None = None) -> None:
        self.llm = load_llm(llm)
        self.budget = budget or Budget()
        self.prices = prices or PriceTable.load()

    def queries(self, question: str, *, trace: Trace | None = None) -> tuple[str, ...]:
        """Return the question, and the rewritten question if there is one.

        trace: record that the call is added to; default: a new one.
        """
        trace = trace or Trace(question)
        return _queries(question, self._calls(trace).ask(_prompts(question)), trace)

    async def aqueries(self, question: str, *, trace: Trace | None = None) -> tuple[str, ...]:
        """`queries` without blocking the event loop."""
        trace = trace or Trace(question)
        return _queries(question, await self._calls(trace).aask(_prompts(question)), trace)

    def estimate(self, question: str) -> Bill:
        """Estimate the call, tokens and cost of rewriting without calling the model."""
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
    """The prompt for the model; none for a blank question."""
    return [rewrite_prompt(question)] if question.strip() else []


def _queries(question: str, outcomes: Sequence[CallOutcome], trace: Trace) -> tuple[str, ...]:
    if not outcomes:
        return (question,)
    (outcome,) = outcomes
    if isinstance(outcome, LLMError):
        trace.notes.append(f"the question was not rewritten: {outcome}")
        return (question,)
    if outcome.cut_off:
        trace.notes.append("the question was not rewritten: the reply is cut off")
        return (question,)
    rewritten = outcome.text.strip().strip("\"'“”`").strip()
    if not rewritten or "\n" in rewritten or len(rewritten) > _MAX_LENGTH:
        trace.notes.append("the question was not rewritten: the model did not reply with a single short line")
        return (question,)
    return (question,) if rewritten.casefold() == question.strip().casefold() else (question, rewritten)


def merge_searches(found: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """Merge the results of several searches into one list, best first, by reciprocal rank fusion.

    found: the candidates of each search.
    The score of a candidate is the sum of `1 / (60 + rank)` over the searches, on the "rank" scale; its
    other fields are those of the first search that found it. A single search keeps its scores.
    Source: Cormack, Clarke and Buettcher, Reciprocal rank fusion, SIGIR 2009.
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
