"""A compressor that keeps the documents that a language model finds relevant."""

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.runnables.config import ensure_config
from pydantic import PrivateAttr

from langchain_precise.compressors import SelectionCompressor
from precise_rag.candidate_filters import DynamicThreshold, RelevanceFilter, RelevanceSettings
from precise_rag.llm import Budget
from precise_rag.trace import PriceTable, Trace
from precise_rag.types import Candidate, Selection

_RELEVANCE = RelevanceSettings()


class RelevanceFilterCompressor(SelectionCompressor):
    """Compressor that keeps documents that a language model finds relevant (ChunkRAG, section 3).

    Documents keep their own scores; the model's are in `read_facts(document)["scores"]`. The
    asynchronous path makes up to `max_concurrency` calls at a time on the running event loop.

    llm: a chat model, or anything else that `load_llm` takes.
    max_concurrency: calls at a time; a `max_concurrency` in the config of a call can lower it.
    budget: limits for each query.
    The other fields are those of `RelevanceSettings`.
    """

    llm: Any
    mode: Literal["batch", "single"] = _RELEVANCE.mode
    batch_size: int = _RELEVANCE.batch_size
    threshold: DynamicThreshold = _RELEVANCE.threshold
    ask_threshold: bool = _RELEVANCE.ask_threshold
    unscored: Literal["keep", "drop"] = _RELEVANCE.unscored
    heuristics: Sequence[str] = _RELEVANCE.heuristics
    instructions: str | None = _RELEVANCE.instructions
    max_concurrency: int = _RELEVANCE.max_concurrency
    budget: Budget | None = None

    _prices: PriceTable = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings and the model now, not at the first query."""
        self._prices = PriceTable.load()
        self._make_filter()

    def decide(self, candidates: Sequence[Candidate], query: str, trace: Trace) -> Selection:
        """Keep the candidates that the model finds relevant."""
        return self._make_filter().filter(query, candidates, trace=trace)

    async def adecide(self, candidates: Sequence[Candidate], query: str, trace: Trace) -> Selection:
        """Run `decide` without blocking the event loop."""
        return await self._make_filter().afilter(query, candidates, trace=trace)

    def _make_filter(self) -> RelevanceFilter:
        settings = {name: getattr(self, name) for name in RelevanceSettings.__dataclass_fields__}
        limit = ensure_config().get("max_concurrency") or self.max_concurrency
        settings["max_concurrency"] = min(limit, self.max_concurrency)
        return RelevanceFilter(self.llm, budget=self.budget, prices=self._prices, **settings)
