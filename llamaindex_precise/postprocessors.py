"""Node postprocessors: rerank nodes, select them by score, drop repetitions, cut them down to evidence.

A part of the core decides what is kept of the nodes of any retriever, see `precise_rag.pipeline.parts`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

from llama_index.core.bridge.pydantic import Field, PrivateAttr, WithJsonSchema, field_serializer
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.settings import Settings

from llamaindex_precise.convert import from_selection, piece_tokens, shown, to_candidates
from llamaindex_precise.embeddings import EncoderComponent, SettingsComponent
from llamaindex_precise.events import dispatcher, observe
from precise_rag.excerpts import Form
from precise_rag.llm import Budget
from precise_rag.pipeline import parts
from precise_rag.trace import Trace
from precise_rag.types import Candidate, ScoreScale, Selection


class SelectionPostprocessor(SettingsComponent, BaseNodePostprocessor):
    """Base of the postprocessors that keep some nodes and drop the rest.

    Kept nodes are copies, best first unless they are excerpts, with the facts about them in
    `metadata["precise"]`, see `read_facts`. Every decision, on dropped nodes too, is sent as a
    PreciseStageEvent.
    """

    _part: parts.SelectionPart = PrivateAttr()
    _mode: ClassVar[MetadataMode] = MetadataMode.EMBED

    def model_post_init(self, context: Any) -> None:
        """Check the settings now; models of other sources are looked for at their first use."""
        super().model_post_init(context)
        self._part = self._make_part()

    def _make_part(self) -> parts.SelectionPart:
        """Return the part of the core that decides what is kept."""
        raise NotImplementedError

    def _candidates(self, nodes: Sequence[NodeWithScore]) -> list[Candidate]:
        return to_candidates(nodes, mode=self._mode)

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
            kept += from_selection(selection)
        return kept

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        trace, candidates = _trace(query_bundle), self._candidates(nodes)
        with self._announced(nodes, candidates, query_bundle) as kept:
            with trace.stage(self.class_name()) as stage:
                stage.outcome = selection = await self._part.adecide(trace.question, candidates, trace)
            kept += from_selection(selection)
        return kept

    @contextmanager
    def _announced(
        self, nodes: list[NodeWithScore], candidates: Sequence[Candidate], query: QueryBundle | None
    ) -> Iterator[list[NodeWithScore]]:
        """Announce a reranking as LlamaIndex's rerankers do. Yields the list for what is kept."""
        kept: list[NodeWithScore] = []
        reranker = self._part.reranker_for(candidates)
        if reranker is None or not nodes:
            yield kept
            return
        name, top_n = reranker.name, getattr(self, "top_n", None) or len(nodes)
        dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=top_n, model_name=name))
        payload: dict[str, Any] = {EventPayload.NODES: nodes, EventPayload.MODEL_NAME: name}
        payload |= {EventPayload.QUERY_STR: query.query_str if query else None, EventPayload.TOP_K: top_n}
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            yield kept
            event.on_end(payload={EventPayload.NODES: kept})
        dispatcher.event(ReRankEndEvent(nodes=kept))


class RerankerPostprocessor(SelectionPostprocessor):
    """Base of the postprocessors with a reranker; their saved settings hold its name.

    reranker: anything that `load_reranker` takes, such as another postprocessor; default: the cascade.
    """

    reranker: Any = "default"

    @field_serializer("reranker")
    def _saved_reranker(self, reranker: Any) -> Any:
        if reranker is None or isinstance(reranker, str):
            return reranker
        return {"name": getattr(reranker, "name", type(reranker).__name__)}


class PreciseRerankPostprocessor(RerankerPostprocessor):
    """Postprocessor that scores nodes against the query and returns the best.

    The scores they had are among the facts: `read_facts(node)["scores"]`.

    top_n: how many nodes to return; default: all.
    score_scale: scale of the scores if the reranker is another postprocessor; by default only its order
        counts.
    """

    top_n: int | None = Field(default=None, gt=0)
    score_scale: ScoreScale | None = None

    def _make_part(self) -> parts.SelectionPart:
        return parts.RerankPart.of(self)


class GradientSelectionPostprocessor(RerankerPostprocessor, parts.GradientOptions):
    """Postprocessor that keeps nodes up to the first sharp drop of the score (SAGE, section V).

    reranker: gives the scores to cut on; None never reranks. It is not called if the nodes come from
    a precise-rag reranker, or if `score_scale` is set.
    score_scale: the scale of the nodes' own scores, which are then cut on as they are.
    count_tokens: counts the tokens of a text for `max_tokens`; default: as the default encoder. Not saved.
    The other fields are those of `GradientSelector`, with share_of_best 0.25 and min_keep 1 by default.
    """

    score_scale: ScoreScale | None = None
    count_tokens: Annotated[Callable[[str], int] | None, Field(exclude=True), WithJsonSchema({})] = None

    def _make_part(self) -> parts.SelectionPart:
        return parts.GradientPart.of(self, self.model_fields_set, shown)

    def _candidates(self, nodes: Sequence[NodeWithScore]) -> list[Candidate]:
        return to_candidates(nodes, self.score_scale)


class RedundancyPostprocessor(EncoderComponent, SelectionPostprocessor, parts.RedundancyOptions):
    """Postprocessor that drops nodes that repeat a better one (ChunkRAG, section 3).

    The texts alone are compared, without metadata: page labels differ in equal texts.

    embed_model: finds repetitions by meaning; by default only nearly equal wording counts.
    The other fields are those of `RedundancyFilter`.
    """

    _mode = MetadataMode.NONE

    def _make_part(self) -> parts.SelectionPart:
        return parts.RedundancyPart.of(self, self._given_encoder())


class RelevanceFilterPostprocessor(SelectionPostprocessor, parts.RelevanceOptions):
    """Postprocessor that keeps nodes that a language model finds relevant (ChunkRAG, section 3).

    Nodes keep their own scores; the model's are in `read_facts(node)["scores"]`.

    llm: a LlamaIndex LLM, or anything else that `load_llm` takes; default `Settings.llm`. It is not saved.
    budget: limits for each query. It is not saved.
    The other fields are those of `RelevanceSettings`.
    """

    _mode = MetadataMode.LLM
    llm: Any = Field(default=None, exclude=True, repr=False)
    budget: Budget | None = Field(default=None, exclude=True)

    def _make_part(self) -> parts.SelectionPart:
        self.llm = self.llm or Settings.llm
        return parts.RelevancePart.of(self)


class EvidencePostprocessor(RerankerPostprocessor, parts.EvidenceOptions):
    """Postprocessor that returns excerpts: the relevant sentences of the nodes and what belongs to them.

    The sentences of all nodes are reranked, grow to the neighbours that probably belong to the same
    evidence, and are kept while they are worth their tokens, see `EvidenceExtractor`. Each excerpt is a new
    node in the order of the text, with the metadata and the relationship to the document of the node it
    was cut from. Its `start_char_idx` and `end_char_idx` are exact if those of the node are. A node
    without text is left out.

    reranker: scores the sentences; of one that is not ours only the order counts, see `LevelledReranker`.
    count_tokens: counts the tokens of a text for `max_tokens`, which holds for nodes with the metadata that
        LLMs see; default: those of the default encoder. It is not saved.
    The other fields are those of `ProbabilitySelector`; min_keep=0 returns nothing if nothing is relevant.
    """

    _mode = MetadataMode.NONE
    count_tokens: Annotated[Callable[[str], int] | None, Field(exclude=True), WithJsonSchema({})] = None

    def _make_part(self) -> parts.SelectionPart:
        return parts.EvidencePart.of(self, self.reranker, Form(shown, piece_tokens))


def _trace(query: QueryBundle | str | None) -> Trace:
    return Trace((query.query_str if isinstance(query, QueryBundle) else query) or "", observer=observe)
