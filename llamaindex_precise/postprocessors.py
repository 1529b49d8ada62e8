"""Node postprocessors: rerank nodes, select them by score, drop repetitions, cut them down to evidence.

Each takes the scored nodes of any retriever and returns new ones. The nodes passed in are not changed. A part
of the core decides what is kept, see `precise_rag.pipeline.parts`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.settings import Settings

from llamaindex_precise.component import SettingsComponent
from llamaindex_precise.convert import from_excerpts, from_selection, own_texts, piece_tokens, to_candidates
from llamaindex_precise.embeddings import EncoderComponent, resolve_encoder
from llamaindex_precise.events import observing, reranking
from precise_rag.candidate_filters import (
    DynamicThreshold,
    RedundancyFilter,
    RelevanceFilter,
    RelevanceSettings,
)
from precise_rag.llm import Budget
from precise_rag.pipeline.parts import (
    EvidencePart,
    GradientPart,
    RedundancyPart,
    RelevancePart,
    RerankPart,
    SelectionPart,
)
from precise_rag.rerank import load_reranker
from precise_rag.selection import DEFAULT_SELECTOR, ProbabilitySelector
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Excerpt, ScoreScale, Selection

dispatcher = get_dispatcher(__name__)

_REDUNDANCY = RedundancyFilter()
_RELEVANCE = RelevanceSettings()
_PROBABILITY = ProbabilitySelector()


class SelectionPostprocessor(SettingsComponent, BaseNodePostprocessor):
    """Base of the postprocessors that keep some nodes and drop the rest.

    Kept nodes are copies, best first, with the facts about them in `metadata["precise"]`, see
    `read_facts`. Every decision, on dropped nodes too, is sent as a PreciseStageEvent.
    """

    _part: SelectionPart = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings and load the models now, not at the first query."""
        super().model_post_init(context)
        self._part = self._make_part()

    @abstractmethod
    def _make_part(self) -> SelectionPart:
        """Return the part of the core that decides what is kept."""

    def _candidates(self, nodes: Sequence[NodeWithScore]) -> list[Candidate]:
        return to_candidates(nodes)

    def _nodes(self, selection: Selection) -> list[NodeWithScore]:
        return from_selection(selection)

    def select(self, nodes: Sequence[NodeWithScore], query: QueryBundle | str | None = None) -> Selection:
        """Return the decision on each node: kept or dropped, with its score and the reason."""
        trace = _trace(query)
        return self._part.decide(trace.question, self._candidates(nodes), trace)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        trace, candidates = _trace(query_bundle), self._candidates(nodes)
        with self._announced(nodes, candidates, query_bundle) as kept:
            with trace.stage(self.class_name()) as stage:
                stage.outcome = selection = self._part.decide(trace.question, candidates, trace)
            kept += self._nodes(selection)
        return kept

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        trace, candidates = _trace(query_bundle), self._candidates(nodes)
        with self._announced(nodes, candidates, query_bundle) as kept:
            with trace.stage(self.class_name()) as stage:
                stage.outcome = selection = await self._part.adecide(trace.question, candidates, trace)
            kept += self._nodes(selection)
        return kept

    @contextmanager
    def _announced(
        self, nodes: list[NodeWithScore], candidates: Sequence[Candidate], query: QueryBundle | None
    ) -> Iterator[list[NodeWithScore]]:
        """Yield a list for the kept nodes; a reranking is announced to LlamaIndex."""
        reranker = self._part.reranker_for(candidates)
        if reranker is None or not nodes:
            yield []
            return
        top_n = getattr(self, "top_n", None) or len(nodes)
        with reranking(dispatcher, self.callback_manager, query, nodes, reranker.name, top_n) as kept:
            yield kept


class RerankerPostprocessor(SelectionPostprocessor):
    """Base of the postprocessors with a reranker; their saved settings hold its name."""

    reranker: Any = Field(
        default="default",
        description='"default" (the best that is installed), "packaged", "cascade", "cohere:<model>", a '
        "CrossEncoder name or path, a reranker object, or another postprocessor.",
    )

    @field_serializer("reranker")
    def _saved_reranker(self, reranker: Any) -> Any:
        if reranker is None or isinstance(reranker, str):
            return reranker
        return {"name": getattr(reranker, "name", type(reranker).__name__)}


class PreciseRerankPostprocessor(RerankerPostprocessor):
    """Postprocessor that scores nodes against the query and returns the best.

    The scores they had are among the facts: `read_facts(node)["scores"]`.
    """

    top_n: int | None = Field(default=None, gt=0, description="How many nodes to return; default: all.")
    score_scale: ScoreScale | None = Field(
        default=None,
        description="Scale of the scores if the reranker is another postprocessor; "
        "by default only its order counts.",
    )

    def _make_part(self) -> SelectionPart:
        return RerankPart(load_reranker(self.reranker, score_scale=self.score_scale), self.top_n)


class GradientSelectionPostprocessor(RerankerPostprocessor):
    """Postprocessor that keeps nodes up to the first sharp drop of the score (SAGE, section V).

    reranker: gives the scores to cut on; None never reranks. It is not called if the nodes come from
    a precise-rag reranker, or if `score_scale` is set.
    score_scale: the scale of the nodes' own scores, which are then cut on as they are.
    The other fields are those of `GradientSelector`.
    """

    score_scale: ScoreScale | None = Field(
        default=None, description='Scale of the nodes\' own scores, such as "probability" or "logit".'
    )
    min_k: int = Field(default=DEFAULT_SELECTOR.min_k, description="Kept before a drop is looked for.")
    ratio: float = Field(
        default=DEFAULT_SELECTOR.ratio,
        description="A score at or under ratio times its predecessor is a sharp drop.",
    )
    max_k: int | None = Field(default=DEFAULT_SELECTOR.max_k, description="Most nodes to keep.")
    max_tokens: int | None = Field(default=DEFAULT_SELECTOR.max_tokens, description="Most tokens to keep.")
    min_score: float | None = Field(default=DEFAULT_SELECTOR.min_score, description="Lowest score to keep.")
    share_of_best: float | None = Field(
        default=DEFAULT_SELECTOR.share_of_best,
        description="Lowest score to keep, as a share of the best one.",
    )
    min_keep: int = Field(
        default=DEFAULT_SELECTOR.min_keep, description="How many of the best to keep whatever they score."
    )
    min_gap: float = Field(default=DEFAULT_SELECTOR.min_gap, description="A smaller drop is never sharp.")
    count_tokens: Callable[[str], int] | None = Field(
        default=DEFAULT_SELECTOR.count_tokens,
        exclude=True,
        description="Counts the tokens of a text for `max_tokens`; default: an estimate.",
    )
    assume_ratio: bool = Field(
        default=DEFAULT_SELECTOR.assume_ratio, description="Treat cosine or rank scores as a ratio scale."
    )

    def _make_part(self) -> SelectionPart:
        reranker = self.reranker if self.score_scale is None else None
        return GradientPart.of(self, self.model_fields_set, reranker)

    def _candidates(self, nodes: Sequence[NodeWithScore]) -> list[Candidate]:
        return to_candidates(nodes, self.score_scale)


class RedundancyPostprocessor(EncoderComponent, SelectionPostprocessor):
    """Postprocessor that drops nodes that repeat a better one (ChunkRAG, section 3).

    The texts alone are compared, without metadata: page labels differ in equal texts.

    embed_model: finds repetitions by meaning; by default only nearly equal wording counts.
    The other fields are those of `RedundancyFilter`.
    """

    similarity_threshold: float = Field(
        default=_REDUNDANCY.similarity_threshold, description="A cosine above it is a repetition."
    )
    prefilter: float = Field(
        default=_REDUNDANCY.prefilter, description="TF-IDF cosine from which vectors are compared."
    )

    def _make_part(self) -> SelectionPart:
        encoder = None
        if self.embed_model is not None or self.encoder_name:
            encoder = resolve_encoder(self.embed_model, self.encoder_name)
            self.encoder_name = encoder.name
        return RedundancyPart(
            RedundancyFilter(
                similarity_threshold=self.similarity_threshold, prefilter=self.prefilter, encoder=encoder
            )
        )

    def _candidates(self, nodes: Sequence[NodeWithScore]) -> list[Candidate]:
        return own_texts(nodes)


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

    def _make_part(self) -> SelectionPart:
        self.llm = self.llm or Settings.llm
        settings = {name: getattr(self, name) for name in RelevanceSettings.__dataclass_fields__}
        return RelevancePart(RelevanceFilter(self.llm, budget=self.budget, **settings))


class EvidencePostprocessor(RerankerPostprocessor):
    """Postprocessor that returns excerpts: the relevant sentences of the nodes and what belongs to them.

    The sentences of all nodes are reranked, grow to the neighbours that probably belong to the same
    evidence, and are kept while they are worth their tokens, see `EvidenceExtractor`. Each excerpt is a new
    node in the order of the text, with the metadata and the relationship to the document of the node it
    was cut from. Its `start_char_idx` and `end_char_idx` are exact if those of the node are. A node
    without text is left out.

    reranker: scores the sentences; of one that is not ours only the order counts, see `LevelledReranker`.
    The other fields are those of `ProbabilitySelector`; with min_keep=0 nothing is returned if nothing is
    relevant.
    """

    share_of_best: float = Field(
        default=_PROBABILITY.share_of_best,
        description="Lowest share of the best sentence's probability to be kept.",
    )
    min_score: float = Field(
        default=_PROBABILITY.min_score, description="Lowest probability of a sentence to be kept."
    )
    enough_tokens: int | None = Field(
        default=_PROBABILITY.enough_tokens, description="Tokens after which no further sentence is kept."
    )
    max_tokens: int | None = Field(
        default=_PROBABILITY.max_tokens,
        description="Most tokens of all nodes as they are written, estimated.",
    )
    min_keep: int = Field(
        default=_PROBABILITY.min_keep,
        description="How many of the best to keep even under the threshold.",
    )

    def _make_part(self) -> SelectionPart:
        return EvidencePart.of(self, self.reranker, piece_tokens)

    def _candidates(self, nodes: Sequence[NodeWithScore]) -> list[Candidate]:
        return own_texts(nodes)

    def _nodes(self, selection: Selection) -> list[NodeWithScore]:
        return from_excerpts(one for one in selection.kept if isinstance(one, Excerpt))


def _trace(query: QueryBundle | str | None) -> Trace:
    text = query.query_str if isinstance(query, QueryBundle) else query
    return Trace(text or "", observer=observing(dispatcher))
