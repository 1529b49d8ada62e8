"""The feedback loop as a conversation: it asks for selections and completions and never fetches one.

    Select(min_k) → Selection       Ask(llm, prompt) → Completion, or an LLMError thrown in

A generator that does no input or output, so that synchronous, asynchronous and streaming drivers
(`feedback.loop`) share every decision.
"""

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from precise_rag.answer import Answer, Round
from precise_rag.errors import BudgetExceeded, ContextLengthError, LLMAuthenticationError, LLMError
from precise_rag.feedback.controller import FeedbackController
from precise_rag.feedback.judgement import parse_judgement
from precise_rag.llm.budget import Spending
from precise_rag.llm.settle import settle
from precise_rag.prompts import NOT_IN_PASSAGES, Prompt, Wording
from precise_rag.protocols import LLM
from precise_rag.tokens import estimate_prompt_tokens
from precise_rag.trace import CallRecord, RoundRecord, StageRecord, Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Completion, Judgement, Selection


class Select(NamedTuple):
    """A request for the selection at `min_k`."""

    min_k: int


class Ask(NamedTuple):
    """A request for a completion; a `live` one may be shown to the reader while it is written."""

    llm: LLM
    prompt: Prompt
    live: bool
    spending: Spending


Steps = Generator[Select | Ask, Any, Answer]


@dataclass(slots=True, kw_only=True)
class Conversation:
    """One question's way through the loop. `steps()` is the generator; use an instance once."""

    question: str
    options: Sequence[str]
    llm: LLM
    judge: LLM
    controller: FeedbackController
    spending: Spending
    prices: PriceTable
    wording: Wording
    live_final: bool
    trace: Trace
    rounds: list[Round] = field(default_factory=list)
    max_chunks: int | None = None

    def steps(self) -> Steps:
        """Ask until the controller stops; returns the Answer.

        Raises LLMError only where no draft was written at all.
        """
        min_k: int | None = self.controller.min_k
        reason = ""
        while min_k is not None:
            min_k, selection = yield from self._select(min_k)
            if not selection.kept:
                reason = "no passage was kept"
                break
            if not self.controller.is_new(selection, self.rounds):
                reason = f"the selection would not change with min_k {min_k}"
                break
            try:
                draft, selection = yield from self._draft(selection)
            except LLMError as error:
                if not self.rounds:
                    raise
                reason = f"round {len(self.rounds) + 1} gave no draft: {error}"
                break
            judgement, problem = yield from self._judgement(draft, selection)
            self.rounds.append(Round(min_k, selection, draft, judgement))
            min_k, reason = self.controller.next_step(self.rounds)
            reason = problem or reason
            self._record_round(reason)
        return self._answer(selection, reason)

    @property
    def _is_live(self) -> bool:
        """Whether the draft of this round is the last one, to be shown while it is written."""
        return self.live_final and len(self.rounds) + 1 >= self.controller.max_rounds

    def _select(self, min_k: int) -> Generator[Select, Any, tuple[int, Selection]]:
        """The first new selection from `min_k` on, as far as the controller reaches."""
        started = time.perf_counter()
        for step in self.controller.steps_from(min_k, self.rounds):
            min_k = step
            selection: Selection = yield Select(min_k)
            if self.max_chunks is not None:
                selection = _keep_best(selection, self.max_chunks)
            if self.controller.is_new(selection, self.rounds):
                break
        ms = (time.perf_counter() - started) * 1e3
        self.trace.add(StageRecord("selection", selection, ms, {"min_k": min_k}, len(self.rounds) + 1))
        return min_k, selection

    def _draft(self, selection: Selection) -> Generator[Ask, Any, tuple[str, Selection]]:
        """A draft, and the selection it was written from: smaller where the model accepts no more."""
        while True:
            prompt = self.wording.answer(self.question, selection.kept, self.options)
            try:
                completion = yield from self._ask("answer", self.llm, prompt, live=self._is_live)
            except ContextLengthError as error:
                if len(selection.kept) == 1:
                    raise
                self.max_chunks = len(selection.kept) // 2
                selection = _keep_best(selection, self.max_chunks)
                note = f"context limit, {self.max_chunks} chunks are tried: {error}"
                self.trace.notes.append(note)
                settings = {"max_chunks": self.max_chunks}
                self.trace.add(
                    StageRecord("context limit", selection, 0.0, settings, len(self.rounds) + 1, note)
                )
            else:
                return completion.text, selection

    def _judgement(
        self, draft: str, selection: Selection
    ) -> Generator[Ask, Any, tuple[Judgement | None, str]]:
        """The judgement, asked for twice at most, and what went wrong with it."""
        if self.controller.max_rounds == 0:
            return None, "judging is off"
        prompt = self.wording.judge(self.question, selection.kept, draft, self.options)
        judgement, problem = Judgement(None, 0, "failed"), ""
        for _ in range(2):
            try:
                completion = yield from self._ask("judge", self.judge, prompt)
            except BudgetExceeded as error:
                return judgement if problem else None, f"the answer is not judged: {error}"
            except LLMError as error:
                judgement, problem = Judgement(None, 0, "failed", str(error)), f"the judge failed: {error}"
                if isinstance(error, ContextLengthError | LLMAuthenticationError):
                    break
            else:
                judgement, problem = parse_judgement(completion.text), "the judgement could not be read"
                if judgement.status == "parsed":
                    return judgement, ""
        return judgement, problem

    def _ask(
        self, role: str, llm: LLM, prompt: Prompt, *, live: bool = False
    ) -> Generator[Ask, Any, Completion]:
        """One call within the budget, recorded whether it succeeds or fails."""
        expected = estimate_prompt_tokens(prompt.messages)
        # A later draft cannot win without its judgement, so there must be room for both.
        needed = 2 if role == "answer" and self.rounds and not live else 1
        self.spending.check(llm.name, expected, self.prices.cost(llm.name, expected, 0), calls=needed)
        started = time.perf_counter()
        reply: Completion | LLMError
        try:
            reply = yield Ask(llm, prompt, live, self.spending)
        except LLMError as error:
            reply = error
        ms = (time.perf_counter() - started) * 1e3
        record = CallRecord(
            role, prompt.version, llm.name, ms, round=len(self.rounds) + 1, messages=prompt.messages
        )
        settle(record, reply, spending=self.spending, prices=self.prices, trace=self.trace)
        if isinstance(reply, LLMError):
            raise reply
        return reply

    def _record_round(self, decision: str) -> None:
        turn = self.rounds[-1]
        kept = tuple(candidate.id for candidate in turn.selection.kept)
        self.trace.add(RoundRecord(len(self.rounds), turn.min_k, kept, turn.judgement, decision, turn.text))

    def _answer(self, selection: Selection, reason: str) -> Answer:
        note = "; ".join((*self.trace.notes, reason))
        self.trace.notes.append(reason)
        if not self.rounds:
            self.trace.answer = NOT_IN_PASSAGES
            note = f"{note}, so no model was asked"
            return Answer(NOT_IN_PASSAGES, "context", selection, note=note, trace=self.trace)
        shown = self.live_final and len(self.rounds) >= self.controller.max_rounds
        best = self.rounds[-1] if shown else self.controller.best(self.rounds)
        self.trace.answer = best.text
        return Answer(
            best.text, "generated", best.selection, best.judgement, tuple(self.rounds), note, self.trace
        )


def _keep_best(selection: Selection, n: int) -> Selection:
    """The same selection with at most its best `n` kept."""
    kept = {candidate.id for candidate in selection.kept[:n]}
    reason = f"the model's context takes {n} chunks"
    return Selection(
        tuple(
            decision._replace(kept=False, reason=reason)
            if decision.kept and decision.candidate.id not in kept
            else decision
            for decision in selection.decisions
        )
    )
