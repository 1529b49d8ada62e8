"""Single stages for texts that any retriever found: each decides which of them to keep.

The postprocessors of LlamaIndex and the compressors of LangChain make one of their settings, and convert.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, TypeVar

from precise_rag.candidate_filters import (
    DynamicThreshold,
    RedundancyFilter,
    RelevanceFilter,
    RelevanceSettings,
)
from precise_rag.encoders.local import count_packaged_tokens
from precise_rag.errors import InputError
from precise_rag.evidence import EvidenceExtractor
from precise_rag.evidence.extractor import FROM_TEXTS
from precise_rag.excerpts import AsWritten, Form
from precise_rag.protocols import Encoder, Reranker
from precise_rag.rerank import calibrated, load_reranker, rerank
from precise_rag.selection import DEFAULT_SELECTOR, GradientSelector, ProbabilitySelector
from precise_rag.tokens import counting
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Selection

T = TypeVar("T", GradientSelector, ProbabilitySelector, RedundancyFilter)
_RELEVANCE, _REDUNDANCY = RelevanceSettings(), RedundancyFilter()


class SelectionPart(ABC):
    """A stage that keeps some candidates and drops the rest."""

    @abstractmethod
    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """Return the decision on each candidate. Calls of models and inner stages are recorded in `trace`."""

    async def adecide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """Run `decide` without blocking the event loop."""
        return await asyncio.to_thread(self.decide, query, candidates, trace)

    def reranker_for(self, candidates: Sequence[Candidate]) -> Reranker | None:
        """Return the reranker that `decide` uses for these candidates; None if it uses none."""
        return getattr(self, "reranker", None)


@dataclass(frozen=True)
class RerankPart(SelectionPart):
    """Keeps the best by a reranker.

    top_n: how many; None for all.
    """

    reranker: Reranker
    top_n: int | None = None

    @classmethod
    def of(cls, settings: Any) -> Self:
        """Return the part of a component, which has `reranker`, `score_scale` and `top_n`."""
        scale = settings.score_scale
        loaded = load_reranker(settings.reranker, score_scale=scale)
        if scale not in (None, loaded.score_scale):
            its = f"the scores of {loaded.name} are on the scale {loaded.score_scale!r}"
            raise InputError(f"score_scale={scale!r}: {its}, and nothing else; leave it out")
        return cls(loaded, settings.top_n)

    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """Keep the best `top_n` candidates."""
        ranked = rerank(query, candidates, self.reranker)
        n_kept = len(ranked) if self.top_n is None else self.top_n
        return Selection.of(
            (one, rank <= n_kept, f"rank {rank} of {len(ranked)} by {self.reranker.name}")
            for rank, one in enumerate(ranked, start=1)
        )


@dataclass(init=False, repr=False, eq=False)
class GradientOptions:
    """Options of `GradientSelector` as fields of a pydantic model."""

    min_k: int = DEFAULT_SELECTOR.min_k
    ratio: float = DEFAULT_SELECTOR.ratio
    max_k: int | None = DEFAULT_SELECTOR.max_k
    max_tokens: int | None = DEFAULT_SELECTOR.max_tokens
    min_score: float | None = DEFAULT_SELECTOR.min_score
    share_of_best: float | None = DEFAULT_SELECTOR.share_of_best
    min_keep: int = DEFAULT_SELECTOR.min_keep
    assume_ratio: bool = DEFAULT_SELECTOR.assume_ratio


@dataclass(frozen=True)
class GradientPart(SelectionPart):
    """Keeps candidates up to the first sharp drop of the score (SAGE, section V).

    shown: the texts of candidates as a model reads them, for `max_tokens`.
    reranker: scores candidates that have no probabilities or logits; None: never.
    """

    selector: GradientSelector
    shown: AsWritten
    reranker: Reranker | None = None

    @classmethod
    def of(cls, settings: Any, chosen: Set[str], shown: AsWritten) -> Self:
        """Return the part of a component.

        settings: the component, `GradientOptions` with `count_tokens`, `score_scale` and `reranker`: anything
            that `load_reranker` takes, or None. Scores on a given scale are not made again.
        chosen: names of the options that the user set. On scores as they are, as in SAGE's figures, a
            `share_of_best` counts only if it is among them.
        """
        reranker = settings.reranker if settings.score_scale is None else None
        selector = _with_settings(GradientSelector, settings)
        if selector.assume_ratio and "share_of_best" not in chosen:
            selector = replace(selector, share_of_best=None)
        return cls(selector, shown, None if reranker is None else calibrated(load_reranker(reranker)))

    def reranker_for(self, candidates: Sequence[Candidate]) -> Reranker | None:
        """Return the reranker; None if all candidates have scores to cut on."""
        has_scores = all(one.score_scale in ("probability", "logit") for one in candidates)
        return None if has_scores else self.reranker

    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """Keep the candidates before the first sharp drop."""
        reranker = self.reranker_for(candidates)
        if self.selector.max_tokens is not None:
            count = counting(self.selector.count_tokens or count_packaged_tokens)
            sizes = count(self.shown(candidates)).tolist()
            candidates = [replace(c, n_tokens=n) for c, n in zip(candidates, sizes, strict=True)]
        if reranker is not None:
            with trace.stage("rerank", reranker=reranker.name) as stage:
                stage.outcome = candidates = rerank(query, candidates, reranker)
        return self.selector.select(candidates)


@dataclass(init=False, repr=False, eq=False)
class RedundancyOptions:
    """Options of `RedundancyFilter` as fields of a pydantic model."""

    similarity_threshold: float = _REDUNDANCY.similarity_threshold
    prefilter: float = _REDUNDANCY.prefilter


@dataclass(frozen=True)
class RedundancyPart(SelectionPart):
    """Drops candidates that repeat a better one (ChunkRAG, section 3)."""

    filter: RedundancyFilter

    @classmethod
    def of(cls, options: RedundancyOptions, encoder: Encoder | None) -> Self:
        """Return the part of a component."""
        return cls(_with_settings(RedundancyFilter, options, encoder=encoder))

    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """Keep the candidates that repeat no better one."""
        return self.filter.filter(candidates)


@dataclass(init=False, repr=False, eq=False)
class RelevanceOptions:
    """Options of `RelevanceFilter` as fields of a pydantic model."""

    mode: Literal["batch", "single"] = _RELEVANCE.mode
    batch_size: int = _RELEVANCE.batch_size
    threshold: DynamicThreshold = _RELEVANCE.threshold
    ask_threshold: bool = _RELEVANCE.ask_threshold
    unscored: Literal["keep", "drop"] = _RELEVANCE.unscored
    heuristics: tuple[str, ...] = tuple(_RELEVANCE.heuristics)
    instructions: str | None = _RELEVANCE.instructions
    max_concurrency: int = _RELEVANCE.max_concurrency


@dataclass(frozen=True)
class RelevancePart(SelectionPart):
    """Keeps candidates that a language model finds relevant (ChunkRAG, section 3)."""

    filter: RelevanceFilter

    @classmethod
    def of(cls, options: Any) -> Self:
        """Return the part of a component: `RelevanceOptions` with `llm` and `budget`."""
        settings = {field.name: getattr(options, field.name) for field in fields(RelevanceSettings)}
        return cls(RelevanceFilter(options.llm, budget=options.budget, **settings))

    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """Keep the candidates that the model finds relevant."""
        return self.filter.filter(query, candidates, trace=trace)

    async def adecide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """Run `decide` without blocking the event loop, several calls at a time."""
        return await self.filter.afilter(query, candidates, trace=trace)


@dataclass(init=False, repr=False, eq=False)
class EvidenceOptions:
    """Options of `ProbabilitySelector` as fields of a pydantic model, with the values of `FROM_TEXTS`."""

    share_of_best: float = FROM_TEXTS.share_of_best
    min_score: float = FROM_TEXTS.min_score
    enough_tokens: int | None = FROM_TEXTS.enough_tokens
    enough_share: float = FROM_TEXTS.enough_share
    max_tokens: int | None = FROM_TEXTS.max_tokens
    min_keep: int = FROM_TEXTS.min_keep


@dataclass(frozen=True)
class EvidencePart(SelectionPart):
    """Keeps the relevant sentences of the texts and what belongs to them, as excerpts.

    form: how a model reads them, for `max_tokens`.
    """

    extractor: EvidenceExtractor
    form: Form

    @classmethod
    def of(cls, options: EvidenceOptions, reranker: Any, form: Form) -> Self:
        """Return the part of a component.

        options: the component, which has `count_tokens`.
        reranker: anything that `load_reranker` takes.
        """
        selector = _with_settings(ProbabilitySelector, options)
        return cls(EvidenceExtractor(reranker, selector), form)

    def reranker_for(self, candidates: Sequence[Candidate]) -> Reranker:
        """Return the reranker."""
        return self.extractor.reranker

    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """Keep the evidence: the excerpts in their order, then the sentences that are dropped."""
        count = counting(self.extractor.selector.count_tokens or count_packaged_tokens)
        return self.extractor.extract(query, candidates, self.form._replace(counts=count))


def _with_settings(kind: type[T], settings: Any, **further: Any) -> T:
    """Return a stage with the options that `settings` has, and further ones."""
    names = [field.name for field in fields(kind) if hasattr(settings, field.name)]
    return kind(**{name: getattr(settings, name) for name in names}, **further)
