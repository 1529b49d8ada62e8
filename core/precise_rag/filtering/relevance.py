"""Drop candidates that a language model finds irrelevant to the question.

Source: ChunkRAG, section 3. Differs: one call scores a batch of chunks by default, and a chunk whose score
cannot be read stays unscored.
"""

import hashlib
import logging
from collections.abc import Generator, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from precise_rag._processes import Portable
from precise_rag.checks import check_number
from precise_rag.errors import InputError, LLMResponseError
from precise_rag.filtering.relevance_parsing import Relevance, parse_score, relevance_of
from precise_rag.filtering.relevance_scoring import Scoring, score_in_batches, score_one_by_one
from precise_rag.filtering.threshold import DynamicThreshold, Threshold
from precise_rag.llm import Budget, load_llm
from precise_rag.llm.calls import CallOutcome, Calls
from precise_rag.prompts import Prompt
from precise_rag.prompts.relevance import RELEVANCE_HEURISTICS, RELEVANCE_VERSION, threshold_prompt
from precise_rag.redaction import said_by
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import Bill, Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Candidate, Completion, Selection, best_first, check_query

_log = logging.getLogger(__name__)

_OUTPUT_TOKENS = {"batch": 45, "single": 12}
"""Estimated tokens of a reply, for each chunk that is scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceSettings:
    """Settings of a RelevanceFilter.

    mode: "batch" asks for the three scores of several chunks in one call; "single" makes three calls for
        each chunk, as the paper does.
    batch_size: chunks per call, for "batch".
    threshold: the rule that decides which scores are relevant.
    ask_threshold: ask the model for the threshold, within the floor and ceiling of `threshold`.
    unscored: "keep" or "drop" chunks that have no score.
    heuristics: rules that the critic checks.
    instructions: replace `precise_rag.prompts.relevance_instructions()`.
    max_concurrency: calls at a time.
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
                "mode must be 'batch' or 'single' and unscored 'keep' or 'drop', "
                f"got mode={self.mode!r}, unscored={self.unscored!r}"
            )
        if not isinstance(self.threshold, DynamicThreshold):
            raise InputError(f"threshold must be a DynamicThreshold, got {self.threshold!r}")
        for name in ("batch_size", "max_concurrency"):
            check_number(name, getattr(self, name), least=1, whole=True)


class RelevanceFilter(Portable):
    """Keeps the candidates that a language model scores as relevant.

    llm: any model that `load_llm` accepts.
    cache: mapping that stores the scores by content, for instance a dict or a shelf; default: none.
    budget: limits for each question; default: none.
    prices: prices of the models; default: the packaged table.
    options: fields of `RelevanceSettings`.

    Adds "relevance", "relevance_base", "relevance_reflection" and "relevance_critic" to the `scores` of
    each scored candidate; its own score stays. A batch that the model refuses, because it is too long or
    for its content, is halved until the chunk that causes it stands alone. A chunk has no score if the
    reply could not be read twice, the call failed, or the budget had no room for it; `unscored` then
    decides.
    Raises LLMAuthenticationError if the key is refused, and LLMResponseError if no chunk has a score and
    `unscored` is "drop".
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
        """Return one decision per candidate, best first.

        trace: record that the calls are added to; default: a new one.
        """
        steps, calls = self._steps(check_query(query), best_first(candidates)), self._calls(query, trace)
        try:
            prompts = next(steps)
            while True:
                prompts = steps.send(calls.ask(prompts))
        except StopIteration as stop:
            selection: Selection = stop.value
            return selection

    async def afilter(
        self, query: str, candidates: Iterable[Candidate], *, trace: Trace | None = None
    ) -> Selection:
        """`filter` without blocking the event loop."""
        steps, calls = self._steps(check_query(query), best_first(candidates)), self._calls(query, trace)
        try:
            prompts = next(steps)
            while True:
                prompts = steps.send(await calls.aask(prompts))
        except StopIteration as stop:
            selection: Selection = stop.value
            return selection

    def estimate(self, query: str, candidates: Iterable[Candidate]) -> Bill:
        """Estimate the calls, tokens and cost of `filter` without calling the model.

        Calls that are made again, because they failed or could not be read, are not counted.
        """
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
    ) -> Generator[list[Prompt], list[CallOutcome], Selection]:
        """The whole filter as a generator, driven like those of `relevance_scoring`."""
        results: list[Relevance | str | None] = [self._cached(query, c.text) for c in ranked]
        unknown = [row for row, result in enumerate(results) if result is None]
        scored = yield from self._scoring(query, [ranked[row].text for row in unknown])
        for row, result in zip(unknown, scored, strict=True):
            results[row] = result
            if isinstance(result, Relevance):
                self._remember(query, ranked[row].text, result)
        known = [result.score for result in results if isinstance(result, Relevance)]
        if ranked and not known and self.settings.unscored == "drop":
            raise LLMResponseError(f"no chunk has a relevance score: {results[0]}")
        threshold = yield from self._threshold(query, known)
        return self._selection(ranked, results, threshold)

    def _threshold(
        self, query: str, scores: Sequence[float]
    ) -> Generator[list[Prompt], list[CallOutcome], Threshold]:
        rule = self.settings.threshold
        if self.settings.ask_threshold and scores:
            (outcome,) = yield [threshold_prompt(query, scores)]
            value = None
            if isinstance(outcome, Completion) and not outcome.cut_off:
                value = parse_score(outcome.text)
            if value is not None:
                return rule.bounded(value, "which the model chose")
        return rule.of(scores)

    def _selection(
        self, ranked: Sequence[Candidate], results: Sequence[Relevance | str | None], threshold: Threshold
    ) -> Selection:
        known = [result.score for result in results if isinstance(result, Relevance)]
        relevant = iter(self.settings.threshold.relevant(known, threshold))
        verdicts: list[tuple[Candidate, bool, str]] = []
        for candidate, result in zip(ranked, results, strict=True):
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
            verdicts.append((candidate, kept, reason))
        return Selection.of(verdicts)

    def _cached(self, query: str, text: str) -> Relevance | None:
        if self.cache is None:
            return None
        try:
            found = self.cache.get(self._key(query, text))
        except Exception as error:
            _log.warning("the cache of relevance scores cannot be read: %s", said_by(error))
            return None
        return relevance_of(found)

    def _remember(self, query: str, text: str, relevance: Relevance) -> None:
        """Store scores in the cache. A cache that fails does not cost the scores that were paid for."""
        if self.cache is None:
            return
        try:
            self.cache[self._key(query, text)] = (*relevance,)
        except Exception as error:
            _log.warning("the cache of relevance scores cannot be written: %s", said_by(error))

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
