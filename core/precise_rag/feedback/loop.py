"""Run the feedback loop: draft, judge, adjust the context, draft again (SAGE, section VI)."""

import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, closing
from functools import partial
from typing import get_args

from precise_rag._processes import Portable
from precise_rag.answer import Answer
from precise_rag.errors import InputError, LLMError, LLMResponseError
from precise_rag.feedback.controller import FeedbackController
from precise_rag.feedback.conversation import CompletionRequest, Conversation, SelectionRequest, Steps
from precise_rag.llm.budget import Budget, Spending
from precise_rag.llm.deadline import Deadline
from precise_rag.llm.failures import failure_of
from precise_rag.llm.usage import counted_completion
from precise_rag.prompts import AnswerStyle, JudgeStyle, Wording
from precise_rag.protocols import LLM, StreamingLLM
from precise_rag.trace import Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Completion, Selection

SelectAt = Callable[[int], Selection]
ASelectAt = Callable[[int], Selection | Awaitable[Selection]]


class FeedbackLoop(Portable):
    """Answers a question from selected context; a model judges each draft and asks for more or less context.

    llm: the model that writes the answers.
    judge: the model that judges them; default: `llm`.
    controller: when to stop and how to change the context; default: `FeedbackController()`.
    budget: limits for each question; default: none.
    style: "open", "short" or "choice" (multiple choice).
    judge_prompt: "json", or "sage" for the form of the paper.
    answer_instructions, judge_instructions: replace the packaged wording (`precise_rag.prompts`).
    prices: prices of the models, for the trace and the budget; default: the packaged table.

    The methods call `select` and the models on the thread and task they are called on. A judge that
    fails is asked once more; then the best draft so far is the answer, with a note.
    Raises InputError if the budget limits the cost and a model has no price.
    """

    def __init__(
        self,
        llm: LLM,
        judge: LLM | None = None,
        controller: FeedbackController | None = None,
        budget: Budget | None = None,
        *,
        style: AnswerStyle = "open",
        judge_prompt: JudgeStyle = "json",
        answer_instructions: str | None = None,
        judge_instructions: str | None = None,
        prices: PriceTable | None = None,
    ) -> None:
        for name, value, kind in (("style", style, AnswerStyle), ("judge_prompt", judge_prompt, JudgeStyle)):
            if value not in get_args(kind):
                raise InputError(f"{name} must be one of {', '.join(get_args(kind))}, got {value!r}")
        self.llm = llm
        self.judge = judge or llm
        self.controller = controller or FeedbackController()
        self.budget = budget or Budget()
        self.style = style
        self.judge_prompt = judge_prompt
        self.answer_instructions = answer_instructions
        self.judge_instructions = judge_instructions
        self.prices = prices or PriceTable.load()
        for model in (self.llm, self.judge):  # a missing price is an error now, not after a paid draft
            self.budget.start().check(model.name, 0, self.prices.cost(model.name, 0, 0))

    @property
    def wording(self) -> Wording:
        """The prompts of this loop."""
        return Wording(
            style=self.style,
            judge_style=self.judge_prompt,
            answer_instructions=self.answer_instructions,
            judge_instructions=self.judge_instructions,
        )

    def run(
        self, question: str, select: SelectAt, *, options: Sequence[str] = (), trace: Trace | None = None
    ) -> Answer:
        """Return the answer with the best judgement.

        question: must not be blank.
        select: returns the selection for a `min_k`; called for each round.
        options: the choices, for the style "choice".
        trace: record to add to; default: a new one, which the Answer carries.
        Raises LLMError if not even a first draft was written.
        """
        *_, answer = self.stream(question, select, options=options, trace=trace)
        assert isinstance(answer, Answer)
        return answer

    async def arun(
        self, question: str, select: ASelectAt, *, options: Sequence[str] = (), trace: Trace | None = None
    ) -> Answer:
        """`run` without blocking the event loop. Cancelling it cancels the running call.

        `select` may be asynchronous.
        """
        async with aclosing(self.astream(question, select, options=options, trace=trace)) as items:
            answer = [item async for item in items][-1]
        assert isinstance(answer, Answer)
        return answer

    def stream(
        self,
        question: str,
        select: SelectAt,
        *,
        options: Sequence[str] = (),
        trace: Trace | None = None,
        live_final: bool = False,
    ) -> Iterator[str | Answer]:
        """Yield the text of the answer in pieces, then the Answer.

        question, select, options, trace: as for `run`.
        live_final: yield the draft of the last round while the model writes it, and judge it afterwards.
            It is then the answer, even if an earlier draft has a better score; if it breaks off, its
            error is raised. Default: all drafts are judged first, and the best one is yielded.
        """
        spending = self.budget.start()
        return self._drive(self._steps(question, options, trace, live_final, spending), select, spending)

    def astream(
        self,
        question: str,
        select: ASelectAt,
        *,
        options: Sequence[str] = (),
        trace: Trace | None = None,
        live_final: bool = False,
    ) -> AsyncGenerator[str | Answer, None]:
        """`stream` without blocking the event loop.

        If you leave it early, close it (`contextlib.aclosing`) to end the running call.
        """
        steps = self._steps(question, options, trace, live_final, self.budget.start())
        return self._adrive(steps, select)

    def _steps(
        self,
        question: str,
        options: Sequence[str],
        trace: Trace | None,
        live_final: bool,
        spending: Spending,
    ) -> Steps:
        if not question.strip():
            raise InputError(f"the question must not be blank, got {question!r}")
        if bool(options) != (self.style == "choice"):
            raise InputError(
                f"options are needed with style='choice' and only then, got style={self.style!r} "
                f"with {len(options)} options"
            )
        return Conversation(
            question=question,
            options=tuple(options),
            llm=self.llm,
            judge=self.judge,
            controller=self.controller,
            spending=spending,
            prices=self.prices,
            wording=self.wording,
            live_final=live_final,
            trace=trace or Trace(question),
        ).steps()

    def _drive(self, steps: Steps, select: SelectAt, spending: Spending) -> Iterator[str | Answer]:
        with closing(steps), Deadline(spending) as deadline:
            exchange = _Exchange(steps)
            while (request := exchange.request()) is not None:
                if isinstance(request, SelectionRequest):
                    exchange.reply = select(request.min_k)
                    continue
                llm, prompt = request.llm, request.prompt
                try:
                    if request.live and isinstance(llm, StreamingLLM):
                        items = iter(deadline.call(partial(llm.stream, prompt.messages)))
                        while (item := deadline.call(partial(next, items, None))) is not None:
                            if piece := exchange.add(item):
                                yield piece
                        exchange.reply = exchange.streamed()
                    else:
                        complete = partial(llm.complete, prompt.messages, schema=prompt.schema)
                        exchange.reply = deadline.call(complete)
                except Exception as error:
                    failure: Exception | None = failure_of(error, llm.name)
                else:
                    failure = None
                if failure is not None:
                    exchange.fail(failure)
        yield from exchange.unshown()

    async def _adrive(self, steps: Steps, select: ASelectAt) -> AsyncGenerator[str | Answer, None]:
        with closing(steps):
            exchange = _Exchange(steps)
            while (request := exchange.request()) is not None:
                if isinstance(request, SelectionRequest):
                    selection = select(request.min_k)
                    exchange.reply = await selection if inspect.isawaitable(selection) else selection
                    continue
                llm, prompt, spending = request.llm, request.prompt, request.spending
                try:
                    if request.live and isinstance(llm, StreamingLLM):
                        async with aclosing(_timed(llm.astream(prompt.messages), spending)) as items:
                            async for item in items:
                                if piece := exchange.add(item):
                                    yield piece
                        exchange.reply = exchange.streamed()
                    else:
                        async with spending.time_limit():
                            exchange.reply = await llm.acomplete(prompt.messages, schema=prompt.schema)
                except Exception as error:
                    failure: Exception | None = failure_of(error, llm.name)
                else:
                    failure = None
                if failure is not None:
                    exchange.fail(failure)
        for last in exchange.unshown():
            yield last


class _Exchange:
    """The open request of a conversation, its reply, and the pieces that the reader was shown."""

    def __init__(self, steps: Steps) -> None:
        self.reply: Selection | Completion | None = None
        self._steps = steps
        self._request: SelectionRequest | CompletionRequest | None = None
        self._failure: LLMError | None = None
        self._answer: Answer | None = None
        self._shown: list[str] = []
        self._completion: Completion | None = None

    def request(self) -> SelectionRequest | CompletionRequest | None:
        """Send the reply or failure; returns the next request, None when the answer is there."""
        failure, self._failure = self._failure, None
        try:
            self._request = self._steps.throw(failure) if failure else self._steps.send(self.reply)
        except StopIteration as stop:
            self._answer, self._request = stop.value, None
        return self._request

    def fail(self, error: Exception) -> None:
        """Keep a failure for the conversation. Raises it if it is not an LLMError."""
        if not isinstance(error, LLMError):
            raise error
        self._failure = error

    def add(self, item: str | Completion) -> str:
        """Take one item of a stream; returns the piece to show, empty if there is none."""
        if isinstance(item, Completion):
            self._completion = item
            return ""
        assert isinstance(self._request, CompletionRequest)
        self._request.spending.check_time()
        if not isinstance(item, str):
            raise LLMResponseError(
                f"{self._request.llm.name}: the stream must hold strings, got {type(item).__name__}"
            )
        if item:
            self._shown.append(item)
            self._request.shown.append(item)
        return item

    def streamed(self) -> Completion:
        """The completion of the stream; its tokens are estimated if the stream did not end with one."""
        assert isinstance(self._request, CompletionRequest)
        if self._completion is not None:
            return self._completion
        return counted_completion(self._request.llm.name, "".join(self._shown), self._request.prompt.messages)

    def unshown(self) -> Iterator[str | Answer]:
        """The text of the answer in pieces, unless they were shown already, then the Answer."""
        assert self._answer is not None
        if not self._shown:
            yield from re.findall(r"\S+\s*|\s+", self._answer.text)
        yield self._answer


async def _timed(
    items: AsyncIterator[str | Completion], spending: Spending
) -> AsyncGenerator[str | Completion, None]:
    """The items, each within the seconds that are left. `items` is closed at the end if it is a generator."""
    try:
        while True:
            async with spending.time_limit():
                item = await anext(items, None)
            if item is None:
                return
            yield item
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()
