"""The feedback loop as a conversation that does no input or output (`precise_rag.llm.session`)."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from precise_rag.answer import Answer, Round
from precise_rag.context import context_passages, passage_tokens, shown_passages
from precise_rag.errors import (
    BudgetExceeded,
    ContentFilterError,
    ContextLengthError,
    EmptyReplyError,
    LLMAuthenticationError,
    LLMError,
    LLMResponseError,
)
from precise_rag.excerpts import Order
from precise_rag.feedback.controller import FeedbackController
from precise_rag.feedback.judgement import parse_judgement
from precise_rag.llm.json_objects import json_objects
from precise_rag.llm.session import Ask, Conversation, Session
from precise_rag.prompts import (
    NOT_IN_PASSAGES,
    REFUSED,
    Prompt,
    Shown,
    Wording,
    chosen_option,
    cited_numbers,
    numbered,
    own_part,
    problem_of,
    repeats_instructions,
)
from precise_rag.protocols import LLM
from precise_rag.tokens import estimate_tokens
from precise_rag.trace import RoundRecord, StageRecord
from precise_rag.types import Completion, Judgement, Selection

SelectAt = Callable[[int], Selection]
"""Returns the selection at a step, see `Selector`."""
MOST_REFUSALS = 8
"""How often a question goes on with less context after the model has refused a prompt."""
_CUT_OFF: Mapping[str, str] = {"length": "by the length limit", "content_filter": "by the content filter"}


@dataclass(slots=True, kw_only=True)
class FeedbackConversation:
    """The state of one question in the loop. Use an instance once.

    question, options: the question, and the choices of a multiple-choice question.
    llm, judge: the models that write and judge.
    order: order of the passages that they see.
    live_final: show the last draft while it is written; it is then the answer.
    rounds: the rounds so far. max_chunks: most chunks that fit into the model's context; None until a
    prompt was too long. left_out: ids of the chunks that the model does not accept, not even alone, and
    why. refusals: how many prompts were refused. is_shown: whether the reader has seen a part of a reply.
    """

    question: str
    options: Sequence[str]
    select: SelectAt
    llm: LLM
    judge: LLM
    controller: FeedbackController
    wording: Wording
    order: Order
    live_final: bool
    session: Session
    rounds: list[Round] = field(default_factory=list)
    max_chunks: int | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    refusals: int = 0
    is_shown: bool = False

    def steps(self) -> Conversation[Answer]:
        """Answer the question. Raises LLMError only if not even one draft was written."""
        step: int | None = 0
        reason = ""
        while step is not None:
            tried, selection = self._select(step)
            if not selection.kept:
                reason = ": ".join(["no passage was kept", *selection.reasons[:1]])
                break
            if not self._is_new(selection):
                reason = f"the selection would not change at step {step:+d}"
                break
            try:
                draft, problem, selection = yield from self._draft(selection)
            except LLMError as error:
                if not self.rounds or self.is_shown:
                    raise
                reason = f"round {len(self.rounds) + 1} has no draft: {error}"
                break
            judgement, unjudged = (None, "") if problem else (yield from self._judgement(draft, selection))
            self.rounds.append(Round(tried, selection, draft, judgement, problem))
            unjudged = unjudged or self._without_verdict()
            step, reason = self.controller.next_step(self.rounds)
            reason = unjudged or reason
            kept = tuple(candidate.id for candidate in selection.kept)
            said = "; ".join(filter(None, (problem, reason)))
            turn = RoundRecord(len(self.rounds), tried, kept, self.rounds[-1].judgement, said, draft)
            self.session.trace.add(turn)
        return self._answer(selection, reason)

    def _select(self, first: int) -> tuple[int, Selection]:
        """The step and the selection of the first new one from a step on, within the controller's reach."""
        started = time.perf_counter()
        for step in self.controller.steps_from(first, self.rounds):
            selection = self._accepted(self.select(step))
            if self._is_new(selection):
                break
        ms = (time.perf_counter() - started) * 1e3
        self.session.trace.add(StageRecord("selection", selection, ms, {"step": step}, len(self.rounds) + 1))
        return step, selection

    def _is_new(self, selection: Selection) -> bool:
        """Whether no round so far was written from what is shown of a selection."""
        shown = self._shown(selection)
        return all(shown != self._shown(turn.selection) for turn in self.rounds)

    def _accepted(self, selection: Selection) -> Selection:
        """The selection without chunks that the model does not accept, and with no more than fit."""
        left_out = {key: f"left out: {why} of the model" for key, why in self.left_out.items()}
        selection = selection.dropping(left_out)
        return selection if self.max_chunks is None else _keep_best(selection, self.max_chunks)

    def _draft(self, selection: Selection) -> Conversation[tuple[str, str, Selection]]:
        """A draft, why it is no answer if it is none, and the selection it was written from.

        While the model refuses the prompt, because it is too long or for its content, the selection is
        halved. A chunk that is refused alone is left out, and the other chunks are tried.
        """
        whole = selection
        is_live = self.live_final and len(self.rounds) + 1 >= self.controller.max_rounds
        while True:
            prompt = self.wording.answer(self.question, self._shown(selection), self.options)
            try:
                draft = yield from self._ask("answer", self.llm, prompt, live=is_live)
            except EmptyReplyError as error:
                return "", str(error), selection
            except (ContextLengthError, ContentFilterError) as error:
                if self.is_shown:
                    raise
                selection = self._after_refusal(whole, selection, error)
                continue
            name = f"the draft of round {len(self.rounds) + 1}"
            if draft.cut_off:
                self.session.trace.notes.append(f"{name} is cut off ({_CUT_OFF[draft.cut_off]})")
            text = numbered(draft.spoken, prompt.mark, self._shown(selection))
            text, is_part = (text, False) if self.is_shown else own_part(text, prompt.mark)
            if is_part:
                self.session.trace.notes.append(f"{name} ends where it repeats itself or its prompt")
            return text, problem_of(text, prompt.mark, self.question, prompt.context), selection

    def _after_refusal(self, whole: Selection, refused: Selection, error: LLMError) -> Selection:
        """The selection to try next. Raises `error` if nothing is left to try.

        whole: the selection that the round began with. refused: the selection of the refused prompt.
        """
        why = "context limit" if isinstance(error, ContextLengthError) else "content filter"
        if len(refused.kept) > 1:
            self.max_chunks = len(refused.kept) // 2
            selection = _keep_best(refused, self.max_chunks)
            did = f"cut to {_counted(self.max_chunks, 'chunk')}"
        else:
            least = estimate_tokens(refused.kept[0].text)
            as_long = [kept for kept in whole.kept if estimate_tokens(kept.text) >= least]
            culprits = as_long if why == "context limit" else refused.kept
            self.left_out |= dict.fromkeys((candidate.id for candidate in culprits), why)
            self.max_chunks = None
            selection = self._accepted(whole)
            did = f"left out {_counted(len(culprits), 'chunk')} that the model does not accept"
        self.refusals += 1
        if not selection.kept or self.refusals > MOST_REFUSALS:
            raise error
        note = f"{why}, {did}: {error}"
        self.session.trace.notes.append(note)
        settings = {"max_chunks": self.max_chunks, "left_out": len(self.left_out)}
        self.session.trace.add(StageRecord(why, selection, 0.0, settings, len(self.rounds) + 1, note))
        return selection

    def _judgement(self, draft: str, selection: Selection) -> Conversation[tuple[Judgement | None, str]]:
        """The judgement, asked for at most twice, and what went wrong; an empty string if nothing did.

        A draft that there was before has the judgement that it had. Failures that clients repeat are final.
        """
        if self.controller.max_rounds == 0:
            return None, "judging is off"
        for turn in self.rounds:
            if turn.text == draft:
                return turn.judgement, ""
        prompt = self.wording.judge(self.question, self._shown(selection), draft, self.options)
        judgement, problem = Judgement(None, 0, "failed"), ""
        for _ in range(2):
            try:
                completion = yield from self._ask("judge", self.judge, prompt)
            except BudgetExceeded as error:
                return judgement if problem else None, f"the answer is not judged: {error}"
            except LLMError as error:
                judgement, problem = Judgement(None, 0, "failed", str(error)), f"the judge failed: {error}"
                again = LLMResponseError if getattr(self.judge, "max_retries", 0) != 0 else LLMError
                final = ContextLengthError | ContentFilterError | LLMAuthenticationError
                if isinstance(error, final) or not isinstance(error, again):
                    break
            else:
                judgement, problem = _read(completion, prompt)
                if not problem or completion.cut_off:
                    break
        return judgement, problem

    def _without_verdict(self) -> str:
        """Take back the verdicts of a judge that gives different drafts the same one, and say so."""
        judged = {turn.text: turn.judgement for turn in self.rounds if turn.judgement}
        if len(judged) < 2 or len({(one.score, one.adjustment) for one in judged.values()}) > 1:
            return ""
        self.rounds = [
            turn._replace(judgement=turn.judgement and Judgement(None, 0, "unparsed", turn.judgement.raw))
            for turn in self.rounds
        ]
        return "the judge gives different answers the same verdict, so none of its verdicts counts"

    def _ask(self, role: str, llm: LLM, prompt: Prompt, *, live: bool = False) -> Conversation[Completion]:
        """One call within the budget. It is recorded whether it succeeds or fails."""
        request = Ask(
            session=self.session,
            role=role,
            llm=llm,
            prompts=[prompt],
            round=len(self.rounds) + 1,
            # A later draft is useless without its judgement, so there must be room for both.
            reserve=1 if role == "answer" and self.rounds and not live else 0,
            live=live,
        )
        try:
            (outcome,) = yield request
        finally:
            self.is_shown = self.is_shown or bool(request.shown)
        if isinstance(outcome, LLMError):
            raise outcome
        assert isinstance(outcome, Completion)
        return outcome

    def _shown(self, selection: Selection) -> list[Shown]:
        return shown_passages(context_passages(selection, self.order))

    def _answer(self, selection: Selection, reason: str) -> Answer:
        trace = self.session.trace
        answers = [turn for turn in self.rounds if not turn.problem]
        if self.is_shown:
            answers = self.rounds[-1:]
        best = self.controller.best(answers) if answers else Round(0, selection, "", None)
        passages = context_passages(best.selection, self.order)
        trace.send(passages, passage_tokens)
        problem = (best if answers else self.rounds[-1]).problem if self.rounds else ""
        reason = "; ".join(filter(None, (problem, reason)))
        if not answers:
            texts = {"": [NOT_IN_PASSAGES], REFUSED: [f"{REFUSED.capitalize()}."]}.get(problem, [])
            texts += [f"{one.source}\n{one.text}".strip() for one in shown_passages(passages)]
            best = best._replace(text="\n\n".join(texts))
            reason += ", so no answer was written"
        trace.answer = best.text
        shown = [" ".join(passage.text.split()) for passage in passages]
        numbers = cited_numbers(best.text, shown) if answers and self.wording.style == "open" else []
        if unknown := [f"[{number}]" for number in numbers if not 1 <= number <= len(passages)]:
            named, n_passages = ", ".join(unknown[:9]), _counted(len(passages), "passage")
            trace.notes.append(f"the answer cites {named}, but it was written from {n_passages}")
        choice = chosen_option(best.text, self.options) if answers and self.options else None
        if answers and self.options and choice is None:
            trace.notes.append("the answer names none of the options, or several")
        trace.notes.append(reason)
        return Answer(
            best.text,
            "generated" if answers else "context",
            best.selection,
            best.judgement,
            tuple(self.rounds),
            "; ".join(trace.notes),
            trace,
            question=self.question,
            passages=passages,
            citations=tuple(passages[number - 1] for number in numbers if 1 <= number <= len(passages)),
            choice=choice,
        )


def _read(reply: Completion, prompt: Prompt) -> tuple[Judgement, str]:
    """The judgement in a reply, and why there is none; an empty string if there is one."""
    judgement, unread = parse_judgement(reply.spoken), Judgement(None, 0, "unparsed", reply.text)
    if reply.cut_off:
        return unread, f"the judgement is cut off ({_CUT_OFF[reply.cut_off]})"
    if judgement.status == "unparsed":
        return judgement, "the judgement could not be read"
    told = [text for fields in json_objects(reply.spoken)[0] for text in fields.values()]
    if prompt.shows(reply.spoken, in_data=True) or any(repeats_instructions(str(text)) for text in told):
        return unread, "the judge repeats its prompt instead of judging"
    return judgement, ""


def _keep_best(selection: Selection, n: int) -> Selection:
    reason = f"the model's context fits {_counted(n, 'chunk')}"
    return selection.dropping({candidate.id: reason for candidate in selection.kept[n:]})


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
