"""A document compressor that asks a language model which documents are relevant."""

from collections.abc import MutableMapping, Sequence
from typing import Any, Literal

from langchain_core.runnables.config import ensure_config
from pydantic import Field, PrivateAttr, SkipValidation

from langchain_precise.compressors import PreciseCompressor
from precise_rag.filtering import DynamicThreshold, RelevanceFilter, RelevanceSettings
from precise_rag.llm import Budget
from precise_rag.trace import PriceTable, Trace
from precise_rag.types import Candidate, Selection

_RELEVANCE = RelevanceSettings()


class RelevanceFilterCompressor(PreciseCompressor):
    """Keeps documents that a language model finds relevant to the query (ChunkRAG, section 3).

    llm: a chat model, or whatever else `load_llm` takes. cache, budget: as in `RelevanceFilter`;
    the other fields are those of `RelevanceSettings`. A `max_concurrency` in the config of a call
    lowers the one here. The model's scores are in `metadata["precise_rag"]["scores"]`.
    """

    llm: Any
    mode: Literal["batch", "single"] = _RELEVANCE.mode
    batch_size: int = _RELEVANCE.batch_size
    threshold: DynamicThreshold | None = None
    ask_threshold: bool = _RELEVANCE.ask_threshold
    unscored: Literal["keep", "drop"] = _RELEVANCE.unscored
    heuristics: Sequence[str] = _RELEVANCE.heuristics
    instructions: str | None = _RELEVANCE.instructions
    max_concurrency: int = _RELEVANCE.max_concurrency
    budget: Budget | None = None
    cache: SkipValidation[MutableMapping[str, tuple[float, float, float]] | None] = Field(
        default=None, exclude=True
    )

    _prices: PriceTable = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the model and the options now rather than in the first request."""
        self._prices = PriceTable.load()
        self._filter()

    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """The candidates that the model finds relevant are kept."""
        return self._filter().filter(query, candidates, trace=trace)

    async def adecide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """`decide` without blocking the event loop."""
        return await self._filter().afilter(query, candidates, trace=trace)

    def _filter(self) -> RelevanceFilter:
        limit = ensure_config().get("max_concurrency") or self.max_concurrency
        return RelevanceFilter(
            self.llm,
            cache=self.cache,
            budget=self.budget,
            prices=self._prices,
            mode=self.mode,
            batch_size=self.batch_size,
            threshold=self.threshold or _RELEVANCE.threshold,
            ask_threshold=self.ask_threshold,
            unscored=self.unscored,
            heuristics=self.heuristics,
            instructions=self.instructions,
            max_concurrency=min(limit, self.max_concurrency),
        )
