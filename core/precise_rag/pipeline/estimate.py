"""The least and the most that a question costs if no call fails, without asking a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from precise_rag.context import context_passages, source_of
from precise_rag.excerpts import Order
from precise_rag.feedback import FeedbackController
from precise_rag.llm.rehearsal import Estimate, bill_of
from precise_rag.llm.session import Session
from precise_rag.pipeline.requests import AnswerRequest
from precise_rag.pipeline.stages import AsksModel
from precise_rag.prompts import Prompt, Shown, Wording
from precise_rag.protocols import LLM
from precise_rag.rewriting import LONGEST_QUESTION, recent_messages
from precise_rag.titles import titles_above
from precise_rag.tokens import estimate_prompt_tokens, estimate_tokens
from precise_rag.trace import Bill
from precise_rag.types import Candidate, Selection, Titles


class Sent(NamedTuple):
    """Passages of a prompt. more: tokens that a part of them may have beside these."""

    passages: list[Shown]
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimator:
    """What is known about a question before a model is asked. Use an instance once.

    asked: the question.
    ranked: what the stages that ask no model leave of the search for it.
    n_candidates: candidates of one search.
    rewriter, relevance: the stages that ask a model, if there are any.
    select: the selection from `ranked` at a step, see `Selector`.
    llm, judge, controller, wording, order, session: as for the question.
    reply_tokens: tokens of the longest reply that is expected.
    """

    asked: AnswerRequest
    ranked: Sequence[Candidate]
    n_candidates: int
    rewriter: AsksModel | None
    relevance: AsksModel | None
    select: Callable[[int], Selection]
    llm: LLM
    judge: LLM
    controller: FeedbackController
    wording: Wording
    order: Order
    session: Session
    reply_tokens: int

    def estimate(self) -> Estimate:
        """Return the least and the most."""
        return Estimate(self._least(), self._most())

    @property
    def _is_searched(self) -> bool:
        """Whether the index is searched, so that other words find other pieces."""
        return self.asked.candidates is None

    @property
    def _finds_others(self) -> bool:
        """Whether other pieces than `ranked` may be found."""
        return self._is_searched and (bool(self.asked.history) or self.rewriter is not None)

    def _least(self) -> Bill:
        limits = self.session.spending.budget
        is_tight = (limits.tokens, limits.seconds, limits.cost) != (None, None, None)
        before = Bill() if is_tight else self._before(self._shortest_question, 1)
        if self.relevance is not None and not self._finds_others and not is_tight:
            before = before.plus(self._relevance(self._shortest_question, self.ranked).least)
        is_answered, after = self._first_round(is_tight)
        room = None if limits.calls is None else max(0, limits.calls - 1)
        if room is not None and before.calls > room:
            before = Bill(room)
        least = before.plus(after) if is_answered else before
        if limits.calls is not None and least.calls > limits.calls:
            least = Bill(limits.calls)
        return least

    def _first_round(self, is_tight: bool) -> tuple[bool, Bill]:
        """Whether there will be a draft, and the bill of an accepted one."""
        if self._finds_others or self.relevance is not None:
            return False, Bill()
        kept = self.select(0).kept
        if not kept:
            return False, Bill()
        question = self._shortest_question
        texts = [piece.text for piece in kept[:1]]
        bill = self._bill(self.llm, self.wording.answer(question, texts, self.asked.options), 1)
        if self.controller.max_rounds > 0 and not is_tight:
            judging = self.wording.judge(question, texts, "x", self.asked.options)
            bill = bill.plus(self._bill(self.judge, judging, 1))
        return True, bill

    def _most(self) -> Bill:
        question = self._longest_question
        most = self._before(question, self.reply_tokens)
        candidates = self._most_found()
        if self.relevance is not None:
            most = most.plus(self._relevance(question, candidates).most)
        rounds = max(1, self.controller.max_rounds)
        for n_before in range(rounds if candidates else 0):
            passages, more = self._most_sent(candidates, n_before)
            drafting = self.wording.answer(question, passages, self.asked.options)
            most = most.plus(self._bill(self.llm, drafting, self.reply_tokens, more=more))
            if self.controller.max_rounds == 0:
                continue
            judging = self.wording.judge(question, passages, "", self.asked.options)
            judged = self._bill(self.judge, judging, self.reply_tokens, more=more + self.reply_tokens)
            most = most.plus(judged)
        return self._limited(most)

    def _before(self, question: str, reply_tokens: int) -> Bill:
        """The bill of the calls before the search."""
        bill = Bill()
        if recent := recent_messages(self.asked.messages):
            bill = self._bill(self.llm, self.wording.standalone(self.asked.text, recent), reply_tokens)
        if self._is_searched and self.rewriter is not None:
            bill = bill.plus(self._stage(self.rewriter, question, reply_tokens=reply_tokens).most)
        return bill

    def _relevance(self, question: str, candidates: Sequence[Candidate]) -> Estimate:
        assert self.relevance is not None
        return self._stage(self.relevance, question, candidates, reply_tokens=self.reply_tokens)

    def _stage(self, stage: AsksModel, *given: Any, reply_tokens: int) -> Estimate:
        return stage.estimate(*given, session=self.session, wording=self.wording, reply_tokens=reply_tokens)

    def _most_found(self) -> Sequence[Candidate]:
        """The candidates that take the most tokens; unknown ones are as long as the longest that is known."""
        if not self._finds_others or not self.ranked:
            return self.ranked
        longest = max(self.ranked, key=lambda piece: estimate_tokens(piece.text))
        n_found = self.n_candidates * (1 if self.rewriter is None else 2)
        return [replace(longest, doc_id=str(n)) for n in range(max(n_found, len(self.ranked)))]

    def _most_sent(self, candidates: Sequence[Candidate], n_before: int) -> Sent:
        """The most that a round can send, after so many rounds before it."""
        if self._finds_others:
            return Sent([_headed(piece) for piece in candidates])
        if self.relevance is not None:
            return self._sent(Selection.keep_all(candidates))
        furthest = min(n_before * self.controller.reach, len(candidates))
        steps = range(-furthest, furthest + 1)
        return max((self._sent(self.select(step)) for step in steps), key=self._tokens)

    def _sent(self, selection: Selection) -> Sent:
        """The most that is sent of a selection, while the model may refuse any of its pieces.

        If a piece between joined neighbours is left out, its text goes, and one more passage comes. Headings
        are shown where they change, which they do no more often among fewer pieces of a document.
        """
        passages = context_passages(selection, self.order)
        if any(len(p.text) < sum(len(piece.text) for piece in p.pieces) for p in passages):
            return Sent([_headed(piece) for piece in selection.kept])
        shown = []
        above: tuple[str, Titles] | None = None
        for passage in passages:
            here = (passage.doc_id if self.order == "document" else "", passage.titles)
            shown.append(Shown(passage.text, "" if here == above else source_of(passage.titles)))
            above = here
        joined = [piece for p in passages if len(p.pieces) > 2 for piece in p.pieces]
        return Sent(shown, sum(max(0, self._fence - estimate_tokens(piece.text)) for piece in joined))

    @property
    def _fence(self) -> int:
        """Tokens around one more passage, and those that a cut makes of the words beside it."""
        one, two = (
            estimate_prompt_tokens(self.wording.answer("x", ["x"] * n, self.asked.options).messages)
            for n in (1, 2)
        )
        return two - one + 2

    def _tokens(self, sent: Sent) -> int:
        texts = sum(estimate_tokens(part) for passage in sent.passages for part in passage)
        return texts + self._fence * len(sent.passages) + sent.more

    @property
    def _longest_question(self) -> str:
        """The question; after a chat, one that takes at least as many tokens as any that is written."""
        if not self.asked.history:
            return self.asked.text
        return "." * max(estimate_tokens(self.asked.text), min(LONGEST_QUESTION, self.reply_tokens))

    @property
    def _shortest_question(self) -> str:
        return "x" if self.asked.history else self.asked.text

    def _limited(self, bill: Bill) -> Bill:
        """The bill under the limits of the budget."""
        limits = self.session.spending.budget
        calls, tokens = limits.calls, limits.tokens
        return bill._replace(
            calls=bill.calls if calls is None else min(calls, bill.calls),
            input_tokens=bill.input_tokens if tokens is None else min(tokens, bill.input_tokens),
        )

    def _bill(self, llm: LLM, prompt: Prompt, reply_tokens: int, *, more: int = 0) -> Bill:
        return bill_of(llm, prompt, reply_tokens, self.session.prices, more=more)


def _headed(piece: Candidate) -> Shown:
    """A piece as a passage of its own."""
    return Shown(piece.text, source_of(titles_above(piece)))
