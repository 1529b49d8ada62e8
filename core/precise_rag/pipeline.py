"""The pipeline: the stages in order. The only module that knows the order.

rewriting → search → reranking → redundancy filter → relevance filter → selection → answer ⟲ feedback
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, overload

from precise_rag._processes import Portable
from precise_rag.answer import Answer
from precise_rag.checks import check_methods, check_number
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
from precise_rag.types import Document, Selection, check_query

DEFAULT_SELECTOR = GradientSelector(floor=0.02, min_keep=3)
"""The default selector: SAGE's gradient with a floor, but at least three candidates.

Why the floor: calibrated probabilities fall slowly, so the gradient alone keeps almost every candidate.
Measured by `python -m benchmarks.reranking.gradient --reranker cascade`."""

DEFAULT_REDUNDANCY = RedundancyFilter()
"""The default redundancy filter: compares TF-IDF vectors, so it needs no encoder."""

DEFAULT_N_CANDIDATES = 50
"""The default number of candidates that are retrieved and reranked."""


class PreciseRAG(Portable):
    """Retrieves the few sentences that answer a question, and answers it from them.

    index: any Index.
    rewriter: also searches for a rewritten question; default: none.
    reranker: scores the candidates for the selection; default: `default_reranker` for the index's encoder.
    redundancy: drops repeated candidates, or None; default: `DEFAULT_REDUNDANCY`.
    relevance: drops candidates that a language model finds irrelevant; default: none.
    selector: decides how many candidates to keep; default: `DEFAULT_SELECTOR`.
    n_candidates: candidates to retrieve, at least 1; default: `DEFAULT_N_CANDIDATES`.
    llm: writes the answer (any model that `load_llm` accepts); default: none, and `answer` returns the
        selected context.
    judge: judges the answer (any model that `load_llm` accepts); default: `llm`.
    controller: rules of the feedback loop, except `min_k`, which is the selector's; default:
        `FeedbackController()`.
    budget: limits for the feedback loop of each question; default: none.
    style: "open", "short" or "choice" (multiple choice); default: "open".
    judge_prompt: "json", or "sage" for the form of the paper; default: "json".
    prices: prices of the models; default: the packaged table.
    """

    def __init__(
        self,
        index: Index,
        *,
        rewriter: QueryRewriter | None = None,
        reranker: Reranker | None = None,
        redundancy: RedundancyFilter | None = DEFAULT_REDUNDANCY,
        relevance: RelevanceFilter | None = None,
        selector: GradientSelector = DEFAULT_SELECTOR,
        n_candidates: int = DEFAULT_N_CANDIDATES,
        llm: Any = None,
        judge: Any = None,
        controller: FeedbackController | None = None,
        budget: Budget | None = None,
        style: AnswerStyle = "open",
        judge_prompt: JudgeStyle = "json",
        prices: PriceTable | None = None,
    ) -> None:
        check_number("n_candidates", n_candidates, least=1, whole=True)
        for name, part, method in (
            ("index", index, "search"),
            ("rewriter", rewriter, "queries"),
            ("reranker", reranker, "score"),
            ("redundancy", redundancy, "filter"),
            ("relevance", relevance, "filter"),
            ("selector", selector, "select"),
        ):
            if part is not None or name in ("index", "selector"):
                check_methods(name, part, (method,), "see the documentation of PreciseRAG")
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
        """Index `documents` with a HybridIndex and build the pipeline on it.

        documents: the texts to index.
        llm: writes the answers; default: none.
        encoder: a name, a path or an Encoder; default: `DEFAULT_ENCODER`.
        passages: the passages that give a sentence its context; default: `HybridSettings.passages`.
        show_progress: show progress bars while indexing; default: False.
        options: further arguments of the constructor.
        """
        index = HybridIndex.build(
            documents, load_encoder(encoder), passages=passages, show_progress=show_progress
        )
        return cls(index, llm=llm, **options)

    def retrieve(self, query: str, *, trace: Trace | None = None) -> Selection:
        """Return the candidates for `query`, each kept or dropped with a reason.

        query: the question, not blank.
        trace: record to add to, for instance one with an observer; default: a new one.
        """
        trace = trace or Trace(query)
        return self._select(self._relevant(query, trace), trace)

    async def aretrieve(self, query: str, *, trace: Trace | None = None) -> Selection:
        """`retrieve` without blocking the event loop."""
        trace = trace or Trace(query)
        return self._select(await self._arelevant(query, trace), trace)

    def answer(self, query: str, *, options: Sequence[str] = (), trace: Trace | None = None) -> Answer:
        """Return an answer from the selected context, judged and improved by the feedback loop.

        query: the question, not blank.
        options: the choices of a multiple-choice question, with style="choice"; default: none.
        trace: record to add to, for instance one with an observer; default: a new one.
        Without a language model the answer is the selected context itself, with kind="context".
        """
        *_, answer = self.stream(query, options=options, trace=trace)
        assert isinstance(answer, Answer)
        return answer

    async def aanswer(self, query: str, *, options: Sequence[str] = (), trace: Trace | None = None) -> Answer:
        """`answer` without blocking the event loop. Cancelling it cancels the running call."""
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
        """Yield the text of the answer in pieces, then the Answer.

        query, options, trace: as for `answer`.
        live_final: yield the last draft while the model writes it (see `FeedbackLoop.stream`);
            default: False.
        """
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
        """`stream` without blocking the event loop.

        If you leave it early, close it (`contextlib.aclosing`) to end the running call.
        """
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
        """Answer several queries concurrently. Returns the answers in order.

        queries: the questions.
        concurrency: questions at a time, at least 1; default: 8.
        return_errors: return an error in place of its answer; default: False, so the first error cancels
            the other questions and is raised.
        """
        if concurrency < 1:
            raise InputError(f"concurrency must be at least 1, got {concurrency}")
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
        """Estimate the least and the most that `answer` would use, without calling a language model.

        query, options: as for `answer`.
        Raises InputError if the pipeline has no language model.
        """
        if self.loop is None:
            raise InputError("there is nothing to estimate without a language model; pass llm=")
        ranked = self._rank(check_query(query), (query,), Trace(query))
        least, most = estimate_cost(self.loop, query, partial(self._select_at, ranked), options=options)
        before = [] if self.rewriter is None else [self.rewriter.estimate(query)]
        if self.relevance is not None:
            before.append(self.relevance.estimate(query, ranked.kept))
        for estimate in before:
            least, most = least.plus(estimate), most.plus(estimate)
        return Estimate(least, most)

    def save(self, path: str | Path) -> None:
        """Save the index to `path`. The other stages are not saved."""
        self.index.save(path)

    def _relevant(self, query: str, trace: Trace) -> Selection:
        """Run the stages before the selection: it keeps what there is to select from."""
        check_query(query)
        queries = (query,) if self.rewriter is None else self.rewriter.queries(query, trace=trace)
        ranked = self._rank(query, queries, trace)
        if self.relevance is None:
            return ranked
        with trace.stage("relevance") as stage:
            stage.outcome = relevant = self.relevance.filter(query, ranked.kept, trace=trace)
        return ranked.then(relevant)

    async def _arelevant(self, query: str, trace: Trace) -> Selection:
        check_query(query)
        queries = (query,) if self.rewriter is None else await self.rewriter.aqueries(query, trace=trace)
        ranked = await asyncio.to_thread(self._rank, query, queries, trace)
        if self.relevance is None:
            return ranked
        with trace.stage("relevance") as stage:
            stage.outcome = relevant = await self.relevance.afilter(query, ranked.kept, trace=trace)
        return ranked.then(relevant)

    def _rank(self, query: str, queries: Sequence[str], trace: Trace) -> Selection:
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
        """The selection at `min_k`, which the feedback loop changes."""
        return ranked.then(self.selector.select_at(ranked.kept, min_k))


def _context_answer(selection: Selection, trace: Trace) -> tuple[str, Answer]:
    trace.answer = text = "\n\n".join(candidate.text.strip() for candidate in selection.kept)
    note = "no language model is configured, so this is the selected context"
    return text, Answer(text, "context", selection, note=note, trace=trace)
