"""The whole path in order; the only module that knows it.

index.search → rerank → redundancy filter → relevance filter → selection → answer ⟲ feedback
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, overload

from precise_rag.answer import Answer
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.feedback import Estimate, FeedbackController, FeedbackLoop, estimate_cost
from precise_rag.filtering import RedundancyFilter, RelevanceFilter
from precise_rag.index import HybridIndex, HybridSettings, Passages
from precise_rag.llm import Budget, load_llm
from precise_rag.prompts import AnswerStyle, JudgeStyle
from precise_rag.protocols import Encoder, Index, Reranker
from precise_rag.rerank import default_reranker, rerank
from precise_rag.rewriting import QueryRewriter, merge_searches
from precise_rag.selection import GradientSelector
from precise_rag.trace import PriceTable, Trace
from precise_rag.types import Document, Selection

DEFAULT_SELECTOR = GradientSelector(floor=0.02, min_keep=3)
"""SAGE's gradient, and beyond the best three nothing that is less than 2 % likely to help.

Calibrated probabilities fall slowly, and seldom to 0.3 of the one before: of 50 sentences reranked by the
cascade the gradient alone keeps 48. With the floor, too, seven held-out sets send 591 tokens instead of 1,674
and keep 81 % of the evidence found, for 13 % fewer tokens than a fixed number of sentences that keeps as
much (benchmarks/reranking/gradient.py --reranker cascade)."""


class PreciseRAG:
    """Retrieval that sends the right few sentences, and answers that judge themselves.

    index: any Index. rewriter: searches for a question in other words too, or None; what both find is
    judged by the question itself. reranker: gives the scores that selection cuts on; by default what
    `default_reranker` has for the index's encoder. redundancy, relevance: filters before the selection,
    or None. selector: decides how many candidates to keep. n_candidates: how many the index is asked for.

    llm: what writes the answer (any model `load_llm` takes); without one, `answer` returns the
    selected context, marked as such. judge: what judges the answer, by default `llm`. controller,
    budget, style, judge_prompt, prices: see `FeedbackLoop`; the first round's `min_k` is always the
    selector's.

    The methods that answer take the `options` of a multiple-choice question, and a `trace` of the
    caller's own, for instance one with an observer.
    """

    def __init__(
        self,
        index: Index,
        *,
        rewriter: QueryRewriter | None = None,
        reranker: Reranker | None = None,
        redundancy: RedundancyFilter | None = RedundancyFilter(),
        relevance: RelevanceFilter | None = None,
        selector: GradientSelector = DEFAULT_SELECTOR,
        n_candidates: int = 50,
        llm: Any = None,
        judge: Any = None,
        controller: FeedbackController | None = None,
        budget: Budget | None = None,
        style: AnswerStyle = "open",
        judge_prompt: JudgeStyle = "json",
        prices: PriceTable | None = None,
    ) -> None:
        if n_candidates < 1:
            raise InputError(f"n_candidates is {n_candidates}; it must be at least 1")
        self.index = index
        self.rewriter = rewriter
        self.reranker = reranker or default_reranker(getattr(index, "encoder", None))
        self.redundancy = redundancy
        self.relevance = relevance
        self.selector = selector
        self.n_candidates = n_candidates
        self.loop = None
        if llm is not None:
            self.loop = FeedbackLoop(
                load_llm(llm),
                None if judge is None else load_llm(judge),
                replace(controller or FeedbackController(), min_k=selector.min_k),
                budget,
                style=style,
                judge_prompt=judge_prompt,
                prices=prices,
            )

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        llm: Any = None,
        *,
        encoder: Encoder | str = DEFAULT_ENCODER,
        passages: Passages = HybridSettings.passages,
        show_progress: bool = False,
        **options: Any,
    ) -> Self:
        """A HybridIndex over `documents`, and the default stages; `options` go to the constructor.

        passages: what a sentence's passage is; "segments" are cut where the topic changes.
        """
        index = HybridIndex.build(
            documents, load_encoder(encoder), passages=passages, show_progress=show_progress
        )
        return cls(index, llm=llm, **options)

    def retrieve(self, query: str, *, trace: Trace | None = None) -> Selection:
        """The candidates for `query`, each kept or dropped for a stated reason."""
        trace = trace or Trace(query)
        return self._select(self._relevant(query, trace), trace)

    async def aretrieve(self, query: str, *, trace: Trace | None = None) -> Selection:
        """`retrieve` without blocking the event loop."""
        trace = trace or Trace(query)
        return self._select(await self._arelevant(query, trace), trace)

    def answer(self, query: str, *, options: Sequence[str] = (), trace: Trace | None = None) -> Answer:
        """An answer from the selected context alone, judged and improved by feedback.

        With no language model the answer is the selected context itself, `kind="context"`.
        """
        *_, answer = self.stream(query, options=options, trace=trace)
        assert isinstance(answer, Answer)
        return answer

    async def aanswer(self, query: str, *, options: Sequence[str] = (), trace: Trace | None = None) -> Answer:
        """`answer` without blocking the event loop. Cancelling it cancels the call in flight."""
        async with aclosing(self.astream(query, options=options, trace=trace)) as items:
            answer = [item async for item in items][-1]
        assert isinstance(answer, Answer)
        return answer

    def stream(
        self,
        query: str,
        *,
        options: Sequence[str] = (),
        trace: Trace | None = None,
        live_final: bool = False,
    ) -> Iterator[str | Answer]:
        """The text of the answer in pieces and, last, the Answer. live_final: see `FeedbackLoop.stream`."""
        trace = trace or Trace(query)
        ranked = self._relevant(query, trace)
        if self.loop is None:
            yield from _context_answer(self._select(ranked, trace), trace)
        else:
            select = partial(self._select_at, ranked)
            yield from self.loop.stream(query, select, options=options, trace=trace, live_final=live_final)

    async def astream(
        self,
        query: str,
        *,
        options: Sequence[str] = (),
        trace: Trace | None = None,
        live_final: bool = False,
    ) -> AsyncGenerator[str | Answer, None]:
        """The same without blocking the event loop. Close it (`contextlib.aclosing`) to leave it early."""
        trace = trace or Trace(query)
        ranked = await self._arelevant(query, trace)
        if self.loop is None:
            for part in _context_answer(self._select(ranked, trace), trace):
                yield part
            return
        select = partial(self._select_at, ranked)
        items = self.loop.astream(query, select, options=options, trace=trace, live_final=live_final)
        async with aclosing(items):
            async for item in items:
                yield item

    @overload
    async def abatch(
        self, queries: Iterable[str], *, concurrency: int = 8, return_errors: Literal[False] = False
    ) -> list[Answer]: ...

    @overload
    async def abatch(
        self, queries: Iterable[str], *, concurrency: int = 8, return_errors: Literal[True]
    ) -> list[Answer | PreciseRagError]: ...

    async def abatch(
        self, queries: Iterable[str], *, concurrency: int = 8, return_errors: bool = False
    ) -> list[Answer] | list[Answer | PreciseRagError]:
        """One answer for each query, in order, with at most `concurrency` in work at a time.

        The first error cancels the others and is raised; with `return_errors` each stands in its
        answer's place instead.
        """
        if concurrency < 1:
            raise InputError(f"concurrency is {concurrency}; it must be at least 1")
        slots = asyncio.Semaphore(concurrency)

        async def answer(query: str) -> Answer | PreciseRagError:
            async with slots:
                try:
                    return await self.aanswer(query)
                except PreciseRagError as error:
                    if not return_errors:
                        raise
                    return error

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(answer(query)) for query in queries]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    def estimate(self, query: str, *, options: Sequence[str] = ()) -> Estimate:
        """The least and the most that `answer` would use, found without asking any model.

        Raises InputError if there is no language model to ask.
        """
        if self.loop is None:
            raise InputError("there is no language model, so nothing to estimate; pass llm=…")
        ranked = self._rank(query, (query,), Trace(query))
        least, most = estimate_cost(self.loop, query, partial(self._select_at, ranked), options=options)
        before = [] if self.rewriter is None else [self.rewriter.estimate(query)]
        if self.relevance is not None:
            before.append(self.relevance.estimate(query, ranked.kept))
        for estimate in before:
            least, most = least.plus(estimate), most.plus(estimate)
        return Estimate(least, most)

    def save(self, path: str | Path) -> None:
        """Save the index; the other stages are settings of the program."""
        self.index.save(path)

    def _relevant(self, query: str, trace: Trace) -> Selection:
        """Everything before the selection: what to choose from, and what is out already."""
        queries = (query,) if self.rewriter is None else self.rewriter.queries(query, trace=trace)
        ranked = self._rank(query, queries, trace)
        if self.relevance is None:
            return ranked
        with trace.stage("relevance") as stage:
            stage.outcome = relevant = self.relevance.filter(query, ranked.kept, trace=trace)
        return ranked.then(relevant)

    async def _arelevant(self, query: str, trace: Trace) -> Selection:
        queries = (query,) if self.rewriter is None else await self.rewriter.aqueries(query, trace=trace)
        ranked = await asyncio.to_thread(self._rank, query, queries, trace)
        if self.relevance is None:
            return ranked
        with trace.stage("relevance") as stage:
            stage.outcome = relevant = await self.relevance.afilter(query, ranked.kept, trace=trace)
        return ranked.then(relevant)

    def _rank(self, query: str, queries: Sequence[str], trace: Trace) -> Selection:
        if not query.strip():
            raise InputError("the query is empty; ask something")
        trace.settings |= {"reranker": self.reranker.name, "selector": asdict(self.selector)}
        with trace.stage("search", n_candidates=self.n_candidates, queries=len(queries)) as stage:
            stage.outcome = found = merge_searches([self.index.search(q, self.n_candidates) for q in queries])
        with trace.stage("rerank", reranker=self.reranker.name) as stage:
            stage.outcome = ranked = rerank(query, found, self.reranker)
        if self.redundancy is None:
            return Selection.keep_all(ranked)
        with trace.stage("redundancy", threshold=self.redundancy.threshold) as stage:
            stage.outcome = unique = self.redundancy.filter(ranked)
        return unique

    def _select(self, ranked: Selection, trace: Trace) -> Selection:
        with trace.stage("selection", min_k=self.selector.min_k) as stage:
            stage.outcome = selected = self._select_at(ranked, self.selector.min_k)
        return selected

    def _select_at(self, ranked: Selection, min_k: int) -> Selection:
        """The selection for another `min_k`, which is what feedback changes."""
        return ranked.then(self.selector.select_at(ranked.kept, min_k))


def _context_answer(selection: Selection, trace: Trace) -> tuple[str, Answer]:
    trace.answer = text = "\n\n".join(candidate.text.strip() for candidate in selection.kept)
    note = "no language model is configured: this is the context itself"
    return text, Answer(text, "context", selection, note=note, trace=trace)
