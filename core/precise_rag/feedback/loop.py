"""Run the feedback loop: draft, judge, adjust the context, draft again (SAGE, section VI)."""

from collections.abc import AsyncGenerator, Iterator, Sequence

from precise_rag._pickling import Portable
from precise_rag.answer import Answer, ain_pieces, in_pieces
from precise_rag.errors import InputError
from precise_rag.feedback.controller import FeedbackController
from precise_rag.feedback.conversation import FeedbackConversation, SelectAt
from precise_rag.llm.budget import Budget
from precise_rag.llm.driver import adrive, astream, drive, stream
from precise_rag.llm.session import Conversation, Session
from precise_rag.prompts import AnswerStyle, JudgeStyle, Wording
from precise_rag.protocols import LLM
from precise_rag.trace import Trace
from precise_rag.trace.prices import PriceTable


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
        self.llm = llm
        self.judge = judge or llm
        self.controller = controller or FeedbackController()
        self.budget = budget or Budget()
        self.style = style
        self.judge_prompt = judge_prompt
        self.answer_instructions = answer_instructions
        self.judge_instructions = judge_instructions
        self.prices = prices or PriceTable.load()
        _ = self.wording
        for model in (self.llm, self.judge):  # a missing price is an error now, not after a paid draft
            self.budget.start().check(model.name, 0, self.prices.cost(model.name, 0, 0))

    @property
    def wording(self) -> Wording:
        """The prompts of this loop."""
        given = {"answer": self.answer_instructions, "judge": self.judge_instructions}
        instructions = {role: text for role, text in given.items() if text is not None}
        return Wording(style=self.style, judge_style=self.judge_prompt, instructions=instructions)

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
        return drive(self._steps(question, select, options, trace, live_final=False))

    async def arun(
        self, question: str, select: SelectAt, *, options: Sequence[str] = (), trace: Trace | None = None
    ) -> Answer:
        """`run` without blocking the event loop. Cancelling it cancels the running call."""
        return await adrive(self._steps(question, select, options, trace, live_final=False))

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
        return in_pieces(stream(self._steps(question, select, options, trace, live_final)))

    def astream(
        self,
        question: str,
        select: SelectAt,
        *,
        options: Sequence[str] = (),
        trace: Trace | None = None,
        live_final: bool = False,
    ) -> AsyncGenerator[str | Answer, None]:
        """`stream` without blocking the event loop.

        If you leave it early, close it (`contextlib.aclosing`) to end the running call.
        """
        return ain_pieces(astream(self._steps(question, select, options, trace, live_final)))

    def _steps(
        self,
        question: str,
        select: SelectAt,
        options: Sequence[str],
        trace: Trace | None,
        live_final: bool,
    ) -> Conversation[Answer]:
        if not question.strip():
            raise InputError(f"the question must not be blank, got {question!r}")
        return FeedbackConversation(
            question=question,
            options=tuple(options),
            select=select,
            llm=self.llm,
            judge=self.judge,
            controller=self.controller,
            session=Session.open(question, budget=self.budget, prices=self.prices, trace=trace),
            wording=self.wording.for_options(options),
            order="score",
            live_final=live_final,
        ).steps()
