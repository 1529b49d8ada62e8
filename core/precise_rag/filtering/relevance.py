"""Chunks that a language model finds relevant to the question (ChunkRAG, section 3)."""

import hashlib
from collections.abc import Generator, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from precise_rag.errors import InputError, LLMError, LLMResponseError
from precise_rag.filtering.relevance_reply import Relevance, read_score
from precise_rag.filtering.scoring import Scoring, score_in_batches, score_one_by_one
from precise_rag.filtering.threshold import DynamicThreshold, Threshold
from precise_rag.llm.budget import Budget
from precise_rag.llm.calls import Calls, Reply
from precise_rag.llm.wrap import load_llm
from precise_rag.prompts import Prompt
from precise_rag.prompts.relevance import RELEVANCE_HEURISTICS, RELEVANCE_VERSION, threshold_prompt
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import Bill, Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Candidate, Completion, Decision, Selection, best_first

_OUTPUT_TOKENS = {"batch": 45, "single": 12}
"""About how many tokens a reply has: for each chunk of a batch, or for a call about one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceSettings:
    """How a RelevanceFilter asks and decides.

    mode: "batch" asks for all three scores of `batch_size` chunks by one call; "single" is the
    paper's three calls for each chunk. threshold: what is relevant, given the scores. ask_threshold:
    let the model name the threshold instead, within the same bounds. unscored: whether to "keep" or
    "drop" a chunk whose score could not be had. heuristics: what the critic checks. instructions: in
    place of `precise_rag.prompts.relevance_instructions()`.
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
        if self.mode not in ("batch", "single") or self.unscored not in ("keep", "drop"):
            raise InputError(
                f"mode is {self.mode!r} and unscored {self.unscored!r}; "
                "expected 'batch' or 'single', and 'keep' or 'drop'"
            )
        if self.batch_size < 1 or self.max_concurrency < 1:
            raise InputError(
                f"batch_size is {self.batch_size} and max_concurrency {self.max_concurrency}; "
                "both must be at least 1"
            )


class RelevanceFilter:
    """Keeps the candidates that a language model scores as relevant.

    llm: any model that `load_llm` takes. options: see `RelevanceSettings`. cache: a mapping that
    keeps scores by content, for instance a dict or a shelf; None keeps none. budget: limits for
    each question. prices: for costs, by default the packaged table.

    Kept and dropped candidates carry the scores in `scores` as "relevance", "relevance_base",
    "relevance_reflection" and "relevance_critic"; their own score and scale stay as they were. A
    chunk that the model gave no readable score for, twice, or that the budget had no room for, is
    unscored, and kept or dropped as `unscored` says, never counted as some number in between.
    Raises LLMAuthenticationError if the key is refused, and LLMError if no chunk at all could be
    scored and unscored ones are to be dropped.
    """

    def __init__(
        self,
        llm: Any,
        *,
        cache: MutableMapping[str, tuple[float, float, float]] | None = None,
        budget: Budget | None = None,
        prices: PriceTable | None = None,
        **options: Any,
    ) -> None:
        self.llm = load_llm(llm)
        self.settings = RelevanceSettings(**options)
        self.cache = cache
        self.budget = budget or Budget()
        self.prices = prices or PriceTable.load()

    def filter(self, query: str, candidates: Iterable[Candidate], *, trace: Trace | None = None) -> Selection:
        """One decision per candidate, best first."""
        steps, calls = self._steps(query, best_first(candidates)), self._calls(query, trace)
        replies: list[Reply] | None = None
        while True:
            try:
                prompts = next(steps) if replies is None else steps.send(replies)
            except StopIteration as stop:
                selection: Selection = stop.value
                return selection
            replies = calls.ask(prompts)

    async def afilter(
        self, query: str, candidates: Iterable[Candidate], *, trace: Trace | None = None
    ) -> Selection:
        """The same without blocking the event loop."""
        steps, calls = self._steps(query, best_first(candidates)), self._calls(query, trace)
        replies: list[Reply] | None = None
        while True:
            try:
                prompts = next(steps) if replies is None else steps.send(replies)
            except StopIteration as stop:
                selection: Selection = stop.value
                return selection
            replies = await calls.aask(prompts)

    def estimate(self, query: str, candidates: Iterable[Candidate]) -> Bill:
        """What `filter` would take for these candidates. Calls no model."""
        texts = [c.text for c in candidates if self._cached(query, c.text) is None]
        per_reply = _OUTPUT_TOKENS[self.settings.mode]
        calls = n_input = n_output = 0
        scoring = self._scoring(query, texts)
        try:
            prompts = next(scoring)
            while True:
                calls += len(prompts)
                n_input += sum(estimate_prompt_tokens(prompt.messages) for prompt in prompts)
                n_output += per_reply * len(texts)
                if self.settings.mode == "batch":
                    break
                prompts = scoring.send([Completion('{"score": 0.5}')] * len(prompts))
        except StopIteration:
            pass
        if self.settings.ask_threshold and texts:
            calls += 1
            n_input += estimate_prompt_tokens(threshold_prompt(query, [0.5] * len(texts)).messages)
            n_output += _OUTPUT_TOKENS["single"]
        return Bill(calls, n_input, n_output, self.prices.cost(self.llm.name, n_input, n_output))

    def _calls(self, query: str, trace: Trace | None) -> Calls:
        return Calls(
            role="relevance",
            llm=self.llm,
            spending=self.budget.start(),
            prices=self.prices,
            trace=trace or Trace(query),
            max_concurrency=self.settings.max_concurrency,
        )

    def _scoring(self, query: str, texts: Sequence[str]) -> Scoring:
        s = self.settings
        if s.mode == "single":
            return score_one_by_one(query, texts, heuristics=s.heuristics, instructions=s.instructions)
        return score_in_batches(
            query,
            texts,
            batch_size=s.batch_size,
            heuristics=s.heuristics,
            instructions=s.instructions,
        )

    def _steps(
        self, query: str, ranked: Sequence[Candidate]
    ) -> Generator[list[Prompt], list[Reply], Selection]:
        """The filter as a conversation (see `filtering.scoring`)."""
        results: list[Relevance | str | None] = [self._cached(query, c.text) for c in ranked]
        unknown = [row for row, result in enumerate(results) if result is None]
        scored = yield from self._scoring(query, [ranked[row].text for row in unknown])
        for row, result in zip(unknown, scored, strict=True):
            results[row] = result
            if self.cache is not None and isinstance(result, Relevance):
                self.cache[self._key(query, ranked[row].text)] = (*result,)
        known = [result.score for result in results if isinstance(result, Relevance)]
        if ranked and not known and self.settings.unscored == "drop":
            raise LLMResponseError(f"no chunk could be scored for relevance: {results[0]}")
        threshold = yield from self._threshold(query, known)
        return self._selection(ranked, results, threshold)

    def _threshold(
        self, query: str, scores: Sequence[float]
    ) -> Generator[list[Prompt], list[Reply], Threshold]:
        rule = self.settings.threshold
        if self.settings.ask_threshold and scores:
            (reply,) = yield [threshold_prompt(query, scores)]
            value = None if isinstance(reply, LLMError) else read_score(reply.text)
            if value is not None:
                return rule.bounded(value, "named by the model")
        return rule.of(scores)

    def _selection(
        self, ranked: Sequence[Candidate], results: Sequence[Relevance | str | None], threshold: Threshold
    ) -> Selection:
        known = [result.score for result in results if isinstance(result, Relevance)]
        relevant = iter(self.settings.threshold.relevant(known, threshold))
        decisions: list[Decision] = []
        for rank, (candidate, result) in enumerate(zip(ranked, results, strict=True), start=1):
            if isinstance(result, Relevance):
                kept = next(relevant)
                side = "reaches" if result.score >= threshold.value else "is under"
                reason = f"relevance {result.score:.2f} {side} {threshold.value:.2f}, {threshold.reason}"
                if kept and side == "is under":
                    reason += f"; among the best {self.settings.threshold.min_keep} (min_keep)"
                given = {"relevance": result.score}
                given |= {f"relevance_{stage}": score for stage, score in result._asdict().items()}
                candidate = replace(candidate, scores={**candidate.scores, **given})
            else:
                kept = self.settings.unscored == "keep"
                reason = f"unscored ({result}); such chunks are {'kept' if kept else 'dropped'}"
            decisions.append(Decision(rank, candidate, kept, reason))
        return Selection(tuple(decisions))

    def _cached(self, query: str, text: str) -> Relevance | None:
        if self.cache is None:
            return None
        found = self.cache.get(self._key(query, text))
        return None if found is None else Relevance(*found)

    def _key(self, query: str, text: str) -> str:
        settings = self.settings
        asked = (
            RELEVANCE_VERSION,
            self.llm.name,
            settings.mode,
            settings.instructions or "",
            *settings.heuristics,
        )
        content = "\0".join((*asked, query, text)).encode("utf-8", "surrogatepass")
        return hashlib.sha256(content).hexdigest()
