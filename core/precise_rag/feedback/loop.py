"""Draft, judge, adjust the context, again: the loop that users call (SAGE, section VI)."""

import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from typing import get_args

from precise_rag.answer import Answer
from precise_rag.errors import InputError, LLMError
from precise_rag.feedback.controller import FeedbackController
from precise_rag.feedback.conversation import Ask, Conversation, Select, Steps
from precise_rag.llm.budget import Budget
from precise_rag.llm.completion import counted_completion
from precise_rag.llm.failures import translated
from precise_rag.prompts import AnswerStyle, JudgeStyle, Wording
from precise_rag.protocols import LLM, StreamingLLM
from precise_rag.trace import Trace
from precise_rag.trace.prices import PriceTable
from precise_rag.types import Completion, Selection

SelectAt = Callable[[int], Selection]
ASelectAt = Callable[[int], Selection | Awaitable[Selection]]


class FeedbackLoop:
    """Answers a question from selected context, and lets a model judge each draft.

    llm: writes the answers. judge: judges them, by default the same model. controller: when to stop
    and where to go. budget: limits for each question. style: "open", "short" or "choice".
    judge_prompt: "json", or "sage" for the paper's form. answer_instructions, judge_instructions: in
    place of the packaged wording (`precise_rag.prompts`). prices: for costs in the trace and in the
    budget, by default the packaged table.

    `select` gives the selection for a `min_k`; it is called once a round. Every method calls it and
    the models on the caller's own thread and task. A judge that fails never costs the answer: it is
    asked once more, and then the best draft so far is returned with a note. Raises LLMError if not
    even a first draft could be had, and InputError for a budget in dollars and a model without price.
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
                raise InputError(f"{name} is {value!r}; expected one of {', '.join(get_args(kind))}")
        self.llm = llm
        self.judge = judge or llm
        self.controller = controller or FeedbackController()
        self.budget = budget or Budget()
        self.style = style
        self.judge_prompt = judge_prompt
        self.answer_instructions = answer_instructions
        self.judge_instructions = judge_instructions
        self.prices = prices or PriceTable.load()
        for model in (self.llm, self.judge):  # an unknown price is told now, not after a paid draft
            self.budget.start().check(model.name, 0, self.prices.cost(model.name, 0, 0))

    @property
    def wording(self) -> Wording:
        """The prompts this loop uses."""
        return Wording(
            style=self.style,
            judge_style=self.judge_prompt,
            answer_instructions=self.answer_instructions,
            judge_instructions=self.judge_instructions,
        )

    def run(
        self, question: str, select: SelectAt, *, options: Sequence[str] = (), trace: Trace | None = None
    ) -> Answer:
        """The best-judged answer."""
        for item in self.stream(question, select, options=options, trace=trace):
            if isinstance(item, Answer):
                return item
        raise AssertionError("the stream ended without an answer")

    async def arun(
        self, question: str, select: ASelectAt, *, options: Sequence[str] = (), trace: Trace | None = None
    ) -> Answer:
        """The same without blocking the event loop. Cancelling it cancels the call in flight."""
        async with aclosing(self.astream(question, select, options=options, trace=trace)) as items:
            async for item in items:
                if isinstance(item, Answer):
                    return item
        raise AssertionError("the stream ended without an answer")

    def stream(
        self,
        question: str,
        select: SelectAt,
        *,
        options: Sequence[str] = (),
        trace: Trace | None = None,
        live_final: bool = False,
    ) -> Iterator[str | Answer]:
        """The text of the answer in pieces and, last, the Answer.

        By default the drafts are judged first and the best one is shown. live_final: the draft of the
        last round allowed is shown while the model writes it, and judged afterwards; it is then the
        answer, even if an earlier draft has the better score, and if it breaks off its error is raised.
        With `max_rounds` 0 or 1 that is every answer.
        """
        steps = self._steps(question, options, trace, live_final)
        return self._drive(steps, select)

    def astream(
        self,
        question: str,
        select: ASelectAt,
        *,
        options: Sequence[str] = (),
        trace: Trace | None = None,
        live_final: bool = False,
    ) -> AsyncGenerator[str | Answer, None]:
        """The same without blocking the event loop.

        Close it (`contextlib.aclosing`) when leaving it early: that ends the call in flight.
        """
        return self._adrive(self._steps(question, options, trace, live_final), select)

    def _steps(self, question: str, options: Sequence[str], trace: Trace | None, live_final: bool) -> Steps:
        if not question.strip():
            raise InputError("the question is empty; ask something")
        if bool(options) != (self.style == "choice"):
            raise InputError(f"style is {self.style!r} with {len(options)} options; only 'choice' takes them")
        return Conversation(
            question=question,
            options=tuple(options),
            llm=self.llm,
            judge=self.judge,
            controller=self.controller,
            spending=self.budget.start(),
            prices=self.prices,
            wording=self.wording,
            live_final=live_final,
            trace=trace or Trace(question),
        ).steps()

    def _drive(self, steps: Steps, select: SelectAt) -> Iterator[str | Answer]:
        with closing(steps):
            talk = _Talk(steps)
            while (request := talk.request()) is not None:
                if isinstance(request, Select):
                    talk.reply = select(request.min_k)
                    continue
                llm, prompt = request.llm, request.prompt
                try:
                    with translated(llm.name):
                        if request.live and isinstance(llm, StreamingLLM):
                            for item in llm.stream(prompt.messages):
                                if piece := talk.add(item):
                                    yield piece
                            talk.reply = talk.streamed()
                        else:
                            talk.reply = llm.complete(prompt.messages, schema=prompt.schema)
                except LLMError as error:
                    talk.fail(error)
        yield from talk.unshown()

    async def _adrive(self, steps: Steps, select: ASelectAt) -> AsyncGenerator[str | Answer, None]:
        with closing(steps):
            talk = _Talk(steps)
            while (request := talk.request()) is not None:
                if isinstance(request, Select):
                    selection = select(request.min_k)
                    talk.reply = await selection if inspect.isawaitable(selection) else selection
                    continue
                llm, prompt, spending = request.llm, request.prompt, request.spending
                try:
                    with translated(llm.name):
                        if request.live and isinstance(llm, StreamingLLM):
                            async with _closing(llm.astream(prompt.messages)) as items:
                                while True:
                                    async with spending.time_limit():
                                        item = await anext(items, None)
                                    if item is None:
                                        break
                                    if piece := talk.add(item):
                                        yield piece
                            talk.reply = talk.streamed()
                        else:
                            async with spending.time_limit():
                                talk.reply = await llm.acomplete(prompt.messages, schema=prompt.schema)
                except LLMError as error:
                    talk.fail(error)
        for last in talk.unshown():
            yield last


class _Talk:
    """One exchange with a conversation: the request that is open, and what the reader was shown."""

    def __init__(self, steps: Steps) -> None:
        self.reply: Selection | Completion | None = None
        self._steps = steps
        self._request: Select | Ask | None = None
        self._failure: LLMError | None = None
        self._answer: Answer | None = None
        self._shown: list[str] = []
        self._completion: Completion | None = None

    def request(self) -> Select | Ask | None:
        """What the conversation asks for next, given the reply or failure; None when it has its answer."""
        failure, self._failure = self._failure, None
        try:
            self._request = self._steps.throw(failure) if failure else self._steps.send(self.reply)
        except StopIteration as stop:
            self._answer, self._request = stop.value, None
        return self._request

    def fail(self, error: LLMError) -> None:
        """Hand a failure to the conversation; raises it where the reader has already seen pieces."""
        if self._shown:
            raise error
        self._failure = error

    def add(self, item: str | Completion) -> str:
        """The piece to show, if `item` is one."""
        if isinstance(item, Completion):
            self._completion = item
            return ""
        assert isinstance(self._request, Ask)
        self._request.spending.check_time()
        if item:
            self._shown.append(item)
        return item

    def streamed(self) -> Completion:
        """The completion that the shown pieces make up."""
        assert isinstance(self._request, Ask)
        if self._completion is not None:
            return self._completion
        return counted_completion(self._request.llm.name, "".join(self._shown), self._request.prompt.messages)

    def unshown(self) -> Iterator[str | Answer]:
        """The answer: its text in pieces, unless they were shown, and then itself."""
        assert self._answer is not None
        if not self._shown:
            yield from re.findall(r"\S+\s*|\s+", self._answer.text)
        yield self._answer


@asynccontextmanager
async def _closing(items: AsyncIterator[str | Completion]) -> AsyncIterator[AsyncIterator[str | Completion]]:
    """`items`, closed at the end where they can be, so that no connection stays open."""
    try:
        yield items
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()
