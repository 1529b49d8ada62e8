"""Node postprocessors: rerank nodes, select them by score, drop repetitions.

Each takes the scored nodes of any retriever and returns new ones. The nodes passed in are not changed.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_precise.component import SettingsComponent
from llamaindex_precise.convert import from_selection, own_texts, to_candidates
from llamaindex_precise.embeddings import EncoderComponent, resolve_encoder
from llamaindex_precise.events import observing, reranking
from precise_rag.candidate_filters import RedundancyFilter
from precise_rag.errors import InputError
from precise_rag.protocols import Reranker
from precise_rag.rerank import calibrated, load_reranker, rerank, rerank_best, unread_note
from precise_rag.selection import DEFAULT_SELECTOR, GradientSelector, selector_of
from precise_rag.trace import Trace
from precise_rag.types import Candidate, ScoreScale, Selection, check_query

dispatcher = get_dispatcher(__name__)

_REDUNDANCY = RedundancyFilter()


class RerankerComponent(SettingsComponent):
    """A component with a reranker; its saved settings hold the reranker's name."""

    reranker: Any = Field(
        default="default",
        description='"default" (the best that is installed), "packaged", "cascade", "cohere:<model>", a '
        "CrossEncoder name or path, a reranker object, or another postprocessor.",
    )

    def _load_reranker(self, score_scale: ScoreScale | None = None) -> Reranker:
        if isinstance(self.reranker, Mapping):
            raise InputError(
                f"settings saved with the reranker object {self.reranker['name']!r} do not hold that object; "
                "pass it again: from_dict(data, reranker=…)"
            )
        return load_reranker(self.reranker, score_scale=score_scale)

    @field_serializer("reranker")
    def _saved_reranker(self, reranker: Any) -> Any:
        if reranker is None or isinstance(reranker, str):
            return reranker
        return {"name": getattr(reranker, "name", type(reranker).__name__)}


class SelectionPostprocessor(SettingsComponent, BaseNodePostprocessor):
    """Base of the postprocessors that keep some nodes and drop the rest.

    Kept nodes are copies, best first, with the facts about them in `metadata["precise"]`, see
    `read_facts`. Every decision, on dropped nodes too, is sent as a PreciseStageEvent.
    """

    @abstractmethod
    def decide(self, candidates: Sequence[Candidate], query: str | None, trace: Trace) -> Selection:
        """Return the core's decision on each candidate; language model calls are recorded in `trace`."""

    async def adecide(self, candidates: Sequence[Candidate], query: str | None, trace: Trace) -> Selection:
        """Run `decide` without blocking the event loop."""
        return await asyncio.to_thread(self.decide, candidates, query, trace)

    def candidates(self, nodes: Sequence[NodeWithScore]) -> list[Candidate]:
        """Return the nodes as core candidates."""
        return to_candidates(nodes)

    def reranker_for(self, candidates: Sequence[Candidate]) -> Reranker | None:
        """Return the reranker that `decide` uses for these candidates, if any."""
        return None

    def nodes(self, selection: Selection) -> list[NodeWithScore]:
        """Return the kept candidates as nodes."""
        return from_selection(selection)

    def select(self, nodes: Sequence[NodeWithScore], query: QueryBundle | str | None = None) -> Selection:
        """Return the decision on each node: kept or dropped, with its score and the reason."""
        text = query.query_str if isinstance(query, QueryBundle) else query
        return self.decide(self.candidates(nodes), text, _trace(text))

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = query_bundle.query_str if query_bundle else None
        trace, candidates = _trace(query), self.candidates(nodes)
        with self._announced(nodes, candidates, query_bundle) as kept:
            with trace.stage(self.class_name()) as stage:
                stage.outcome = selection = self.decide(candidates, query, trace)
            kept += self.nodes(selection)
        return kept

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = query_bundle.query_str if query_bundle else None
        trace, candidates = _trace(query), self.candidates(nodes)
        with self._announced(nodes, candidates, query_bundle) as kept:
            with trace.stage(self.class_name()) as stage:
                stage.outcome = selection = await self.adecide(candidates, query, trace)
            kept += self.nodes(selection)
        return kept

    @contextmanager
    def _announced(
        self, nodes: list[NodeWithScore], candidates: Sequence[Candidate], query: QueryBundle | None
    ) -> Iterator[list[NodeWithScore]]:
        """Yield a list for the kept nodes; a reranking is announced to LlamaIndex."""
        reranker = self.reranker_for(candidates)
        if reranker is None or not nodes:
            yield []
            return
        top_n = getattr(self, "top_n", None) or len(nodes)
        with reranking(dispatcher, self.callback_manager, query, nodes, reranker.name, top_n) as kept:
            yield kept


class PreciseRerankPostprocessor(RerankerComponent, SelectionPostprocessor):
    """Postprocessor that scores nodes against the query and returns the best.

    The scores they had are among the facts: `read_facts(node)["scores"]`.
    """

    top_n: int | None = Field(default=None, gt=0, description="How many nodes to return; default: all.")
    score_scale: ScoreScale | None = Field(
        default=None,
        description="Scale of the scores if the reranker is another postprocessor; "
        "by default only its order counts.",
    )

    _reranker: Reranker = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Load the reranker now, not at the first query."""
        super().model_post_init(context)
        self._reranker = self._load_reranker(self.score_scale)

    def reranker_for(self, candidates: Sequence[Candidate]) -> Reranker | None:
        """Return the reranker."""
        return self._reranker

    def decide(self, candidates: Sequence[Candidate], query: str | None, trace: Trace) -> Selection:
        """Keep the best `top_n` candidates."""
        return rerank_best(require_query(query), candidates, self._reranker, self.top_n)


class GradientSelectionPostprocessor(RerankerComponent, SelectionPostprocessor):
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

    _reranker: Reranker | None = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings and load the reranker now, not at the first query."""
        super().model_post_init(context)
        self.selector()
        self._reranker = None if self.reranker is None else calibrated(self._load_reranker())

    def selector(self) -> GradientSelector:
        """Return the core's selector with these settings."""
        return selector_of(vars(self), self.model_fields_set)

    def candidates(self, nodes: Sequence[NodeWithScore]) -> list[Candidate]:
        """Return the nodes as core candidates, their own scores on `score_scale`."""
        return to_candidates(nodes, self.score_scale)

    def reranker_for(self, candidates: Sequence[Candidate]) -> Reranker | None:
        """Return the reranker, or None if the candidates have scores to cut on."""
        return None if self.score_scale is not None or _are_reranked(candidates) else self._reranker

    def decide(self, candidates: Sequence[Candidate], query: str | None, trace: Trace) -> Selection:
        """Keep the candidates before the first sharp drop."""
        return self.selector().select(self.rank(candidates, query, trace))

    def rank(self, candidates: Sequence[Candidate], query: str | None, trace: Trace) -> Sequence[Candidate]:
        """Return the candidates with scores to cut on: the reranker's, or their own."""
        reranker = self.reranker_for(candidates)
        if reranker is None:
            return candidates
        with trace.stage("rerank", reranker=reranker.name) as stage:
            question = require_query(query)
            stage.outcome = ranked = rerank(question, candidates, reranker)
            stage.note = unread_note(question, ranked)
        return ranked


class RedundancyPostprocessor(EncoderComponent, SelectionPostprocessor):
    """Postprocessor that drops nodes that repeat a better one (ChunkRAG, section 3).

    embed_model: finds repetitions by meaning; by default only nearly equal wording counts.
    The other fields are those of `RedundancyFilter`.
    """

    similarity_threshold: float = Field(
        default=_REDUNDANCY.similarity_threshold, description="A cosine above it is a repetition."
    )
    prefilter: float = Field(
        default=_REDUNDANCY.prefilter, description="TF-IDF cosine from which vectors are compared."
    )

    _filter: RedundancyFilter = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings and load the encoder now, not at the first query."""
        super().model_post_init(context)
        encoder = None
        if self.embed_model is not None or self.encoder_name:
            encoder = resolve_encoder(self.embed_model, self.encoder_name)
            self.encoder_name = encoder.name
        self._filter = RedundancyFilter(
            similarity_threshold=self.similarity_threshold, prefilter=self.prefilter, encoder=encoder
        )

    def candidates(self, nodes: Sequence[NodeWithScore]) -> list[Candidate]:
        """Return the nodes as core candidates, without their metadata: page labels differ in equal texts."""
        return own_texts(nodes)

    def decide(self, candidates: Sequence[Candidate], query: str | None, trace: Trace) -> Selection:
        """Keep the candidates that repeat no better one."""
        return self._filter.filter(candidates)


def require_query(query: str | None) -> str:
    """Return the query. Raises InputError if it is missing or blank."""
    if query is None:
        raise InputError("this postprocessor needs the query; pass query_str= or query_bundle=")
    return check_query(query)


def _are_reranked(candidates: Sequence[Candidate]) -> bool:
    return all(candidate.score_scale in ("probability", "logit") for candidate in candidates)


def _trace(query: str | None) -> Trace:
    return Trace(query or "", observer=observing(dispatcher))
