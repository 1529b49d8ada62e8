"""A postprocessor that keeps the nodes that a language model finds relevant."""

from collections.abc import Sequence
from typing import Any, Literal

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.settings import Settings

from llamaindex_precise.postprocessors import SelectionPostprocessor, require_query
from precise_rag.candidate_filters import DynamicThreshold, RelevanceFilter, RelevanceSettings
from precise_rag.llm import Budget
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Selection

_RELEVANCE = RelevanceSettings()


class RelevanceFilterPostprocessor(SelectionPostprocessor):
    """Postprocessor that keeps nodes that a language model finds relevant (ChunkRAG, section 3).

    Nodes keep their own scores; the model's are in `read_facts(node)["scores"]`. The
    asynchronous path makes up to `max_concurrency` calls at a time on the running event loop.
    """

    llm: Any = Field(
        default=None,
        exclude=True,
        description="A LlamaIndex LLM, or anything else that load_llm takes; default: Settings.llm.",
    )
    mode: Literal["batch", "single"] = Field(
        default=_RELEVANCE.mode, description='"batch": one call for many nodes. "single": three for each.'
    )
    batch_size: int = Field(default=_RELEVANCE.batch_size, description="Nodes in one call.")
    threshold: DynamicThreshold = Field(
        default=_RELEVANCE.threshold, description="Finds the lowest relevant score from all scores."
    )
    ask_threshold: bool = Field(
        default=_RELEVANCE.ask_threshold, description="Let the model name the threshold, within bounds."
    )
    unscored: Literal["keep", "drop"] = Field(
        default=_RELEVANCE.unscored, description="Whether to keep a node without a readable score."
    )
    heuristics: tuple[str, ...] = Field(
        default=tuple(_RELEVANCE.heuristics), description="What the critic checks."
    )
    instructions: str | None = Field(
        default=_RELEVANCE.instructions, description="Replaces relevance_instructions()."
    )
    max_concurrency: int = Field(default=_RELEVANCE.max_concurrency, description="Calls at a time.")
    budget: Budget | None = Field(default=None, exclude=True, description="Limits for each query.")

    _filter: RelevanceFilter = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings and the model now, not at the first query."""
        super().model_post_init(context)
        self.llm = self.llm or Settings.llm
        self._filter = self._make_filter()

    def decide(self, candidates: Sequence[Candidate], query: str | None, trace: Trace) -> Selection:
        """Keep the candidates that the model finds relevant."""
        return self._filter.filter(require_query(query), candidates, trace=trace)

    async def adecide(self, candidates: Sequence[Candidate], query: str | None, trace: Trace) -> Selection:
        """Run `decide` without blocking the event loop."""
        return await self._filter.afilter(require_query(query), candidates, trace=trace)

    def _make_filter(self) -> RelevanceFilter:
        settings = {name: getattr(self, name) for name in RelevanceSettings.__dataclass_fields__}
        return RelevanceFilter(self.llm, budget=self.budget, **settings)
