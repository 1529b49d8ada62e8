"""The whole path in order; the only module that knows it.

index.search → rerank → redundancy filter → relevance filter → selection → answer ⟲ feedback
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.feedback import FeedbackController, FeedbackLoop
from precise_rag.filtering import RedundancyFilter
from precise_rag.index import HybridIndex
from precise_rag.llm import load_llm
from precise_rag.protocols import Encoder, Index, Reranker
from precise_rag.rerank import load_reranker, rerank
from precise_rag.selection import GradientSelector
from precise_rag.trace import Trace
from precise_rag.types import Answer, Decision, Document, Selection

if TYPE_CHECKING:
    from precise_rag.filtering import RelevanceFilter


class PreciseRAG:
    """Retrieval that sends the right few sentences, and answers that judge themselves.

    index: any Index. reranker: gives the scores that selection cuts on. redundancy, relevance:
    filters before the selection, or None. selector: decides how many candidates to keep. llm:
    what writes the answer (any model `load_llm` takes); without one, `answer` returns the selected
    context, marked as such. judge: what judges the answer, by default `llm`. n_candidates: how
    many the index is asked for.

    `retrieve` and `answer` take a `trace` of the caller's own, for instance one with an observer.
    """

    def __init__(
        self,
        index: Index,
        *,
        reranker: Reranker | None = None,
        redundancy: RedundancyFilter | None = RedundancyFilter(),
        relevance: RelevanceFilter | None = None,
        selector: GradientSelector = GradientSelector(),
        llm: Any = None,
        judge: Any = None,
        n_candidates: int = 50,
    ) -> None:
        if n_candidates < 1:
            raise InputError(f"n_candidates is {n_candidates}; it must be at least 1")
        self.index = index
        self.reranker = reranker or load_reranker()
        self.redundancy = redundancy
        self.relevance = relevance
        self.selector = selector
        self.loop = None
        if llm is not None:
            self.loop = FeedbackLoop(
                load_llm(llm),
                judge=None if judge is None else load_llm(judge),
                controller=FeedbackController(min_k=selector.min_k),
            )
        self.n_candidates = n_candidates

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        llm: Any = None,
        *,
        encoder: Encoder | str = DEFAULT_ENCODER,
        show_progress: bool = False,
        **options: Any,
    ) -> Self:
        """A HybridIndex over `documents`, and the default stages; `options` go to the constructor."""
        index = HybridIndex.build(documents, load_encoder(encoder), show_progress=show_progress)
        return cls(index, llm=llm, **options)

    def retrieve(self, query: str, *, trace: Trace | None = None) -> Selection:
        """The candidates for `query`, each kept or dropped for a stated reason."""
        trace = trace or Trace(query)
        return self._select(self._filter(query, self._rank(query, trace), trace), trace)

    async def aretrieve(self, query: str, *, trace: Trace | None = None) -> Selection:
        """`retrieve` without blocking the event loop."""
        trace = trace or Trace(query)
        ranked = await asyncio.to_thread(self._rank, query, trace)
        return self._select(await self._afilter(query, ranked, trace), trace)

    def answer(self, query: str, *, trace: Trace | None = None) -> Answer:
        """An answer from the selected context alone, judged and improved by feedback.

        With no language model the answer is the selected context itself, `kind="context"`.
        """
        trace = trace or Trace(query)
        ranked = self._filter(query, self._rank(query, trace), trace)
        if self.loop is None:
            return _context_answer(self._select(ranked, trace), trace)
        return self.loop.run(query, partial(self._select_at, ranked), trace=trace)

    async def aanswer(self, query: str, *, trace: Trace | None = None) -> Answer:
        """`answer` without blocking the event loop."""
        trace = trace or Trace(query)
        ranked = await asyncio.to_thread(self._rank, query, trace)
        ranked = await self._afilter(query, ranked, trace)
        if self.loop is None:
            return _context_answer(self._select(ranked, trace), trace)
        return await self.loop.arun(query, partial(self._select_at, ranked), trace=trace)

    def save(self, path: str | Path) -> None:
        """Save the index; the other stages are settings of the program."""
        self.index.save(path)

    def _rank(self, query: str, trace: Trace) -> Selection:
        if not query.strip():
            raise InputError("the query is empty; ask something")
        with trace.stage("search", n_candidates=self.n_candidates) as stage:
            stage.outcome = found = self.index.search(query, self.n_candidates)
        with trace.stage("rerank", reranker=self.reranker.name) as stage:
            stage.outcome = ranked = rerank(query, found, self.reranker)
        if self.redundancy is None:
            return Selection(tuple(Decision(i, c, True, "") for i, c in enumerate(ranked, start=1)))
        with trace.stage("redundancy", threshold=self.redundancy.threshold) as stage:
            stage.outcome = unique = self.redundancy.filter(ranked)
        return unique

    def _filter(self, query: str, ranked: Selection, trace: Trace) -> Selection:
        if self.relevance is None:
            return ranked
        with trace.stage("relevance") as stage:
            stage.outcome = relevant = self.relevance.filter(query, ranked.kept)
        return _then(ranked, relevant)

    async def _afilter(self, query: str, ranked: Selection, trace: Trace) -> Selection:
        if self.relevance is None:
            return ranked
        with trace.stage("relevance") as stage:
            stage.outcome = relevant = await self.relevance.afilter(query, ranked.kept)
        return _then(ranked, relevant)

    def _select(self, ranked: Selection, trace: Trace) -> Selection:
        settings = {"min_k": self.selector.min_k, "ratio": self.selector.ratio}
        with trace.stage("selection", **settings) as stage:
            stage.outcome = selected = self._select_at(ranked, self.selector.min_k)
        return selected

    def _select_at(self, ranked: Selection, min_k: int) -> Selection:
        """The selection for another `min_k`, which is what feedback changes."""
        return _then(ranked, replace(self.selector, min_k=min_k).select(ranked.kept))


def _then(earlier: Selection, later: Selection) -> Selection:
    """The later stage's decisions with what the earlier one had dropped, in score order."""
    decisions = [*later.decisions, *(decision for decision in earlier.decisions if not decision.kept)]
    decisions.sort(key=lambda decision: -decision.candidate.score)
    return Selection(tuple(d._replace(rank=rank) for rank, d in enumerate(decisions, start=1)))


def _context_answer(selection: Selection, trace: Trace) -> Answer:
    text = "\n\n".join(candidate.text.strip() for candidate in selection.kept)
    note = "no language model is configured: this is the context itself"
    return Answer(text, "context", selection, note=note, trace=trace)
