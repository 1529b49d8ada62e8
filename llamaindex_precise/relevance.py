"""A postprocessor that asks a language model which nodes are relevant."""

from collections.abc import MutableMapping, Sequence
from typing import Any, Literal

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.prompts import PromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixin
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.settings import Settings
from pydantic import SkipValidation

from llamaindex_precise.convert import to_candidates
from llamaindex_precise.postprocessors import SelectionPostprocessor, required
from precise_rag.filtering import DynamicThreshold, RelevanceFilter, RelevanceSettings
from precise_rag.llm import Budget
from precise_rag.prompts import relevance_instructions
from precise_rag.trace import Trace
from precise_rag.types import Selection

_DEFAULTS = RelevanceSettings()


class RelevanceFilterPostprocessor(SelectionPostprocessor, PromptMixin):
    """Keeps nodes that a language model scores as relevant to the query (ChunkRAG, section 3).

    Nodes keep their own scores; the model's stand in their facts. The asynchronous path makes up
    to `max_concurrency` calls at a time on the running event loop.
    """

    llm: Any = Field(
        default=None,
        exclude=True,
        description="A LlamaIndex LLM, or what else load_llm takes; by default Settings.llm.",
    )
    mode: Literal["batch", "single"] = Field(
        default=_DEFAULTS.mode, description='"batch": one call for many nodes. "single": three for each.'
    )
    batch_size: int = Field(default=_DEFAULTS.batch_size, description="Nodes in one call.")
    threshold: DynamicThreshold = Field(
        default=_DEFAULTS.threshold, description="What is relevant, given the scores."
    )
    ask_threshold: bool = Field(
        default=_DEFAULTS.ask_threshold, description="Let the model name the threshold, within bounds."
    )
    unscored: Literal["keep", "drop"] = Field(
        default=_DEFAULTS.unscored, description="What becomes of a node whose score could not be had."
    )
    heuristics: tuple[str, ...] = Field(
        default=tuple(_DEFAULTS.heuristics), description="What the critic checks."
    )
    instructions: str | None = Field(
        default=_DEFAULTS.instructions, description="In place of relevance_instructions()."
    )
    max_concurrency: int = Field(default=_DEFAULTS.max_concurrency, description="Calls at a time.")
    budget: Budget | None = Field(default=None, exclude=True, description="Limits for each query.")
    cache: SkipValidation[MutableMapping[str, tuple[float, float, float]] | None] = Field(
        default=None, exclude=True, description="Keeps scores by content, such as a dict or a shelf."
    )

    _filter: RelevanceFilter = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings and find the model now rather than in the first query."""
        super().model_post_init(context)
        self.llm = self.llm or Settings.llm
        self._load()

    def decide(self, nodes: Sequence[NodeWithScore], query: QueryBundle | None, trace: Trace) -> Selection:
        """Nodes that the model finds relevant are kept."""
        return self._filter.filter(required(query), to_candidates(nodes), trace=trace)

    async def adecide(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None, trace: Trace
    ) -> Selection:
        """`decide` without blocking the event loop."""
        return await self._filter.afilter(required(query), to_candidates(nodes), trace=trace)

    def _load(self) -> None:
        names = RelevanceSettings.__dataclass_fields__
        self._filter = RelevanceFilter(
            self.llm, cache=self.cache, budget=self.budget, **{name: getattr(self, name) for name in names}
        )

    def _get_prompts(self) -> PromptDictType:
        return {"relevance_instructions": PromptTemplate(self.instructions or relevance_instructions())}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        if "relevance_instructions" in prompts:
            self.instructions = prompts["relevance_instructions"].get_template()
            self._load()
