"""Drop candidates that a language model finds irrelevant to the question.

Source: ChunkRAG, section 3. Differs: one call scores a batch of chunks by default, and a chunk whose score
cannot be read stays unscored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from precise_rag.candidate_filters.relevance_scoring import (
    Ask,
    Relevance,
    parse_score,
    score_in_batches,
    score_one_by_one,
)
from precise_rag.candidate_filters.threshold import DynamicThreshold, Threshold
from precise_rag.checks import check_choice, check_number, of_kind
from precise_rag.errors import LLMResponseError
from precise_rag.llm import Budget, load_llm
from precise_rag.llm.driver import adrive, drive
from precise_rag.llm.session import Conversation, Session
from precise_rag.prompts import Wording
from precise_rag.prompts.relevance import (
    RELEVANCE_HEURISTICS,
    relevance_prompt,
    single_relevance_prompt,
    threshold_prompt,
)
from precise_rag.trace import Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Candidate, Completion, Selection, Verdict, best_first, check_query


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceSettings:
    """Settings of a RelevanceFilter.

    mode: "batch" asks for the three scores of several chunks in one call; "single" makes three calls for
        each chunk, as the paper does.
    batch_size: chunks per call, for "batch".
    threshold: the rule that decides which scores are relevant.
    ask_threshold: ask the model for the threshold, within the `min_score` and ceiling of `threshold`.
    unscored: "keep" or "drop" chunks that have no score.
    heuristics: rules that the critic checks.
    instructions: about relevance, in place of ours.
    max_concurrency: calls at a time; under a limit of tokens or cost see `Budget`.
    """

    mode: Literal["batch", "single"] = "batch"
    batch_size: int = 10
    threshold: DynamicThreshold = field(default_factory=DynamicThreshold)
    ask_threshold: bool = False
    unscored: Literal["keep", "drop"] = "keep"
    heuristics: Sequence[str] = RELEVANCE_HEURISTICS
    instructions: str | None = None
    max_concurrency: int = 4

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, ("batch", "single"))
        check_choice("unscored", self.unscored, ("keep", "drop"))
        of_kind("threshold", self.threshold, DynamicThreshold)
        for name in ("batch_size", "max_concurrency"):
            check_number(name, getattr(self, name), least=1, whole=True)


class RelevanceFilter:
    """Keeps the candidates that a language model scores as relevant.

    llm: any model that `load_llm` accepts; default: that of the pipeline.
    budget: limits for each question when it is used alone; in a pipeline its budget counts. Default: none.
    prices: prices of the models when it is used alone; default: the packaged table.
    options: fields of `RelevanceSettings`.

    Adds "relevance", "relevance_base", "relevance_reflection" and "relevance_critic" to the `scores` of
    each scored candidate; its own score stays. A batch that the model refuses, because it is too long or
    for its content, is halved until the chunk that causes it stands alone. A chunk has no score if the
    reply could not be read twice, the call failed, or the budget had no room for it: see `unscored`.
    Raises LLMAuthenticationError if the key is refused, and LLMResponseError if no chunk has a score and
    `unscored` is "drop".
    """

    def __init__(
        self,
        llm: Any = None,
        *,
        budget: Budget | None = None,
        prices: PriceTable | None = None,
        **options: Any,
    ) -> None:
        self.llm = None if llm is None else load_llm(llm)
        self.settings = RelevanceSettings(**options)
        self.budget = of_kind("budget", budget, Budget, Budget)
        self.prices = of_kind("prices", prices, PriceTable, PriceTable.load)

    def filter(self, query: str, candidates: Iterable[Candidate], *, trace: Trace | None = None) -> Selection:
        """Return one decision per candidate, best first.

        trace: record that the calls are added to; default: a new one.
        """
        return drive(self.steps(query, candidates, self._session(query, trace)))

    async def afilter(
        self, query: str, candidates: Iterable[Candidate], *, trace: Trace | None = None
    ) -> Selection:
        """`filter` without blocking the event loop."""
        return await adrive(self.steps(query, candidates, self._session(query, trace)))

    def steps(
        self, query: str, candidates: Iterable[Candidate], session: Session, wording: Wording | None = None
    ) -> Conversation[Selection]:
        """Filter in the session of a pipeline, see `precise_rag.llm.session`.

        wording: has the instructions if the settings have none.
        """
        settings = self.settings
        if wording is not None and not settings.instructions:
            settings = replace(settings, instructions=wording.instructions.get("relevance"))
        ranked = best_first(candidates)
        llm = session.model(self.llm, "the relevance filter")
        check_query(query)
        ask = partial(session.ask, "relevance", llm, max_concurrency=settings.max_concurrency)
        texts = [candidate.text for candidate in ranked]
        rules: Any = {"heuristics": settings.heuristics, "instructions": settings.instructions}
        if settings.mode == "batch":
            of_texts = partial(relevance_prompt, query, **rules)
            results = yield from score_in_batches(ask, of_texts, texts, settings.batch_size)
        else:
            of_text = partial(single_relevance_prompt, query, **rules)
            results = yield from score_one_by_one(ask, of_text, texts)
        scores = [result.score for result in results if isinstance(result, Relevance)]
        if ranked and not scores:
            session.trace.notes.append(f"no chunk has a relevance score: {results[0]}")
            if settings.unscored == "drop":
                raise LLMResponseError(session.trace.notes[-1])
        threshold = yield from _threshold(settings, ask, query, scores)
        return _selection(settings, ranked, results, threshold)

    def _session(self, query: str, trace: Trace | None) -> Session:
        return Session.start(query, budget=self.budget, prices=self.prices, trace=trace)


def _threshold(
    settings: RelevanceSettings, ask: Ask, query: str, scores: Sequence[float]
) -> Conversation[Threshold]:
    if settings.ask_threshold and scores:
        (reply,) = yield from ask([threshold_prompt(query, scores)])
        value = parse_score(reply.spoken) if isinstance(reply, Completion) and not reply.cut_off else None
        if value is not None:
            return settings.threshold.bounded(value, "which the model chose")
    return settings.threshold.of(scores)


def _selection(
    settings: RelevanceSettings,
    ranked: Sequence[Candidate],
    results: Sequence[Relevance | str],
    threshold: Threshold,
) -> Selection:
    scores = [result.score for result in results if isinstance(result, Relevance)]
    relevant = iter(settings.threshold.relevant(scores, threshold))
    verdicts: list[Verdict] = []
    for candidate, result in zip(ranked, results, strict=True):
        if isinstance(result, Relevance):
            kept = next(relevant)
            side = "reaches" if result.score >= threshold.value else "is under"
            reason = f"relevance {result.score:.2f} {side} {threshold.value:.2f}, {threshold.reason}"
            if kept and side == "is under":
                reason += f"; among the best {settings.threshold.min_keep} (min_keep)"
            stages = {f"relevance_{stage}": score for stage, score in result._asdict().items()}
            candidate = replace(candidate, scores={**candidate.scores, "relevance": result.score, **stages})
        else:
            kept = settings.unscored == "keep"
            reason = f"unscored ({result}); such chunks are {'kept' if kept else 'dropped'}"
        verdicts.append((candidate, kept, reason))
    return Selection.of(verdicts)
