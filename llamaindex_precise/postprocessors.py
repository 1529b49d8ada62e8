"""Node postprocessors: rerank, select by gradient, drop what is redundant or irrelevant.

Each takes scored nodes of any retriever and returns new ones; the nodes given stay as they were.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.utils import get_tokenizer

from llamaindex_precise.component import SettingsComponent
from llamaindex_precise.convert import from_candidates, from_selection, to_candidates
from llamaindex_precise.embeddings import EncoderComponent, resolve_encoder
from llamaindex_precise.events import trace_events
from precise_rag.errors import InputError
from precise_rag.filtering import RedundancyFilter
from precise_rag.protocols import Reranker
from precise_rag.rerank import load_reranker, rerank
from precise_rag.selection import GradientSelector
from precise_rag.trace import Trace
from precise_rag.types import Candidate, ScoreScale, Selection

dispatcher = get_dispatcher(__name__)

_GRADIENT = GradientSelector()
_REDUNDANCY = RedundancyFilter()


class RerankerComponent(SettingsComponent):
    """A component with a reranker: a name, which settings are saved with, or an object."""

    reranker: Any = Field(
        default="packaged",
        description='"packaged" (no download), "cascade" (better, slower), "cohere:<model>", a CrossEncoder '
        "name or path, a reranker object, or another postprocessor.",
    )

    def _load_reranker(self, score_scale: ScoreScale | None = None) -> Reranker:
        if isinstance(self.reranker, Mapping):
            raise InputError(
                f"these settings were saved with a reranker object, {self.reranker['name']!r}; "
                "pass it again: from_dict(data, reranker=…)"
            )
        return load_reranker(self.reranker, score_scale=score_scale)

    @field_serializer("reranker")
    def _saved_reranker(self, reranker: Any) -> Any:
        if reranker is None or isinstance(reranker, str):
            return reranker
        return {"name": getattr(reranker, "name", type(reranker).__name__)}


class PreciseRerankPostprocessor(RerankerComponent, BaseNodePostprocessor):
    """Scores nodes again and returns them best first; the scores they had stay in their facts."""

    top_n: int | None = Field(default=None, gt=0, description="How many nodes to return; None: all.")
    score_scale: ScoreScale | None = Field(
        default=None, description="What the scores of another postprocessor mean; unsaid, its order counts."
    )

    _reranker: Reranker = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Load the reranker now rather than in the first query."""
        super().model_post_init(context)
        self._reranker = self._load_reranker(self.score_scale)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = required(query_bundle)
        if not nodes:
            return []
        name, top_n = self._reranker.name, self.top_n or len(nodes)
        dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=top_n, model_name=name))
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: query,
            EventPayload.TOP_K: top_n,
        }
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            ranked = rerank(query, to_candidates(nodes), self._reranker)
            reranked = from_candidates(ranked[:top_n], nodes)
            event.on_end(payload={EventPayload.NODES: reranked})
        dispatcher.event(ReRankEndEvent(nodes=reranked))
        return reranked

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._postprocess_nodes, nodes, query_bundle)


class SelectionPostprocessor(SettingsComponent, BaseNodePostprocessor):
    """Base of the postprocessors that keep some nodes and drop others, best first.

    Every decision, on the dropped ones too, goes out as a PreciseStageEvent; a kept node carries
    the reason in its facts.
    """

    @abstractmethod
    def decide(self, nodes: Sequence[NodeWithScore], query: QueryBundle | None, trace: Trace) -> Selection:
        """The core's decision on each node; `trace` takes the calls it makes."""

    async def adecide(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None, trace: Trace
    ) -> Selection:
        """`decide` without blocking the event loop."""
        return await asyncio.to_thread(self.decide, nodes, query, trace)

    def select(self, nodes: Sequence[NodeWithScore], query: QueryBundle | str | None = None) -> Selection:
        """Each node, kept or dropped, with its score and the reason."""
        bundle = QueryBundle(query) if isinstance(query, str) else query
        return self.decide(nodes, bundle, _trace(bundle))

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        trace = _trace(query_bundle)
        with trace.stage(self.class_name()) as stage:
            stage.outcome = selection = self.decide(nodes, query_bundle, trace)
        return from_selection(selection, nodes)

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        trace = _trace(query_bundle)
        with trace.stage(self.class_name()) as stage:
            stage.outcome = selection = await self.adecide(nodes, query_bundle, trace)
        return from_selection(selection, nodes)


class GradientSelectionPostprocessor(RerankerComponent, SelectionPostprocessor):
    """Keeps nodes up to the first sharp drop of the score (SAGE, section V).

    The reranker gives the scores to cut on. It is not asked where nodes come reranked by precise-rag,
    or `score_scale` says what their own scores mean; with None, never.
    """

    score_scale: ScoreScale | None = Field(
        default=None, description='What the nodes\' own scores mean, such as "probability" or "logit".'
    )
    min_k: int = Field(default=_GRADIENT.min_k, description="Kept before a drop is looked for.")
    ratio: float = Field(
        default=_GRADIENT.ratio, description="A score at or under ratio times the one before is a sharp drop."
    )
    max_k: int | None = Field(default=_GRADIENT.max_k, description="Most nodes to keep.")
    max_tokens: int | None = Field(default=_GRADIENT.max_tokens, description="Most tokens to keep.")
    floor: float | None = Field(default=_GRADIENT.floor, description="Nothing that scores under it is kept.")
    min_keep: int = Field(
        default=_GRADIENT.min_keep, description="So many of the best are kept even under the floor."
    )
    min_gap: float = Field(default=_GRADIENT.min_gap, description="A drop smaller than this is not sharp.")
    assume_ratio: bool = Field(
        default=_GRADIENT.assume_ratio, description="Take cosine or rank scores as a ratio scale."
    )

    _reranker: Reranker | None = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings and load the reranker now rather than in the first query."""
        super().model_post_init(context)
        self.selector()
        self._reranker = None if self.reranker is None else self._load_reranker()

    def selector(self) -> GradientSelector:
        """The core's selector with these settings."""
        return GradientSelector(
            min_k=self.min_k,
            ratio=self.ratio,
            max_k=self.max_k,
            max_tokens=self.max_tokens,
            floor=self.floor,
            min_keep=self.min_keep,
            min_gap=self.min_gap,
            count_tokens=_count_tokens,
            assume_ratio=self.assume_ratio,
        )

    def rank(self, nodes: Sequence[NodeWithScore], query: QueryBundle | None) -> list[Candidate]:
        """The nodes as candidates with scores to cut on: their own, or else the reranker's."""
        candidates = to_candidates(nodes, self.score_scale)
        comparable = all(candidate.score_scale in ("probability", "logit") for candidate in candidates)
        if self._reranker is None or self.score_scale is not None or comparable:
            return candidates
        return rerank(required(query), candidates, self._reranker)

    def decide(self, nodes: Sequence[NodeWithScore], query: QueryBundle | None, trace: Trace) -> Selection:
        """Nodes before the first sharp drop are kept."""
        return self.selector().select(self.rank(nodes, query))


class RedundancyPostprocessor(EncoderComponent, SelectionPostprocessor):
    """Drops nodes that only repeat a better one (ChunkRAG).

    Repetition is judged by words alone, or by meaning where an `embed_model` is given.
    """

    threshold: float = Field(default=_REDUNDANCY.threshold, description="A cosine above it is a repetition.")
    prefilter: float = Field(
        default=_REDUNDANCY.prefilter, description="TF-IDF cosine from which vectors are compared."
    )

    _filter: RedundancyFilter = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings now rather than in the first query."""
        super().model_post_init(context)
        encoder = None
        if self.embed_model is not None or self.encoder_name:
            encoder = resolve_encoder(self.embed_model, self.encoder_name)
            self.encoder_name = encoder.name
        self._filter = RedundancyFilter(threshold=self.threshold, prefilter=self.prefilter, encoder=encoder)

    def decide(self, nodes: Sequence[NodeWithScore], query: QueryBundle | None, trace: Trace) -> Selection:
        """Nodes that repeat no better one are kept; the reason names the one that is repeated."""
        return self._filter.filter(to_candidates(nodes))


def required(query: QueryBundle | None) -> str:
    """The query's text. Raises ValueError if there is none."""
    if query is None:
        raise ValueError("nodes are judged here against a query; pass query_bundle= or query_str=")
    return query.query_str


def _trace(query: QueryBundle | None) -> Trace:
    """A trace whose records go out as events."""
    return Trace(query.query_str if query else "", observer=trace_events(dispatcher))


def _count_tokens(text: str) -> int:
    """Tokens by the tokenizer that LlamaIndex counts with."""
    return len(get_tokenizer()(text))
