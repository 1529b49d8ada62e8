"""An answer that judges itself and asks for more or less context."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any, Literal, NamedTuple, cast

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import run_in_executor
from langchain_core.runnables.utils import AddableDict
from pydantic import ConfigDict, Field, PrivateAttr
from typing_extensions import TypedDict

from langchain_precise.compressors import GradientSelectionCompressor
from langchain_precise.convert import kept_documents
from langchain_precise.events import observe, observing
from precise_rag.answer import Answer
from precise_rag.feedback import FeedbackController, FeedbackLoop
from precise_rag.llm import Budget, load_llm
from precise_rag.prompts import JudgeStyle
from precise_rag.trace import PriceTable, Trace
from precise_rag.types import Candidate, Selection

_CONTROLLER = FeedbackController()


class SelfFeedbackOutput(TypedDict):
    """What comes back for a question.

    context: what the answer stands on, best first. score: the judge's, 1 to 10, None where there
    is none. note: why it stopped there. trace: every stage, model call and round, as JSON values.
    """

    question: str
    answer: str
    kind: Literal["generated", "context"]
    context: list[Document]
    score: int | None
    note: str
    trace: dict[str, Any]


class SelfFeedbackChain(RunnableSerializable[str, SelfFeedbackOutput]):
    """Answers, judges its answer and, where that is weak, answers again from more or less context.

    Source: SAGE, section VI.

    retriever: anything from a question to documents; give it a large `k`, since `compressor`
    decides how much of it the model gets to see. llm: a chat model. judge: the model that judges,
    by default `llm`. accept, max_rounds, reach: as in `FeedbackController`. The other fields are
    those of `FeedbackLoop`.

    A stream gives the question, the answer piece by piece and the rest at the end, in dictionaries
    that add up to what `invoke` returns. The answer is streamed when it is accepted; with
    `live_final`, the last draft allowed is streamed while the model writes it, and judged after.
    """

    retriever: RetrieverLike
    llm: Any
    judge: Any = None
    compressor: GradientSelectionCompressor = Field(default_factory=GradientSelectionCompressor)
    accept: int = _CONTROLLER.accept
    max_rounds: int = _CONTROLLER.max_rounds
    reach: int = _CONTROLLER.reach
    budget: Budget | None = None
    style: Literal["open", "short"] = "open"
    judge_prompt: JudgeStyle = "json"
    answer_instructions: str | None = None
    judge_instructions: str | None = None
    prices: PriceTable | None = None
    live_final: bool = False

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")
    _loop: FeedbackLoop = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the models and options now rather than at the first question."""
        self._loop = FeedbackLoop(
            load_llm(self.llm),
            judge=None if self.judge is None else load_llm(self.judge),
            controller=FeedbackController(
                min_k=self.compressor.min_k,
                accept=self.accept,
                max_rounds=self.max_rounds,
                reach=self.reach,
            ),
            budget=self.budget,
            style=self.style,
            judge_prompt=self.judge_prompt,
            answer_instructions=self.answer_instructions,
            judge_instructions=self.judge_instructions,
            prices=self.prices,
        )

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> SelfFeedbackOutput:
        """The best answer seen, and how it came about."""
        return self._call_with_config(self._answer, input, config, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> SelfFeedbackOutput:
        """`invoke` without blocking the event loop."""
        return await self._acall_with_config(self._aanswer, input, config, **kwargs)

    def stream(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[SelfFeedbackOutput]:
        """The answer piece by piece, in dictionaries that add up."""
        return self.transform(iter([input]), config, **kwargs)

    def transform(
        self, input: Iterator[str], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[SelfFeedbackOutput]:
        """`stream` for a question that itself comes in pieces."""
        return self._transform_stream_with_config(input, self._stream, config, **kwargs)

    def astream(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[SelfFeedbackOutput]:
        """`stream` without blocking the event loop."""

        async def once() -> AsyncIterator[str]:
            yield input

        return self.atransform(once(), config, **kwargs)

    def atransform(
        self, input: AsyncIterator[str], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[SelfFeedbackOutput]:
        """`transform` without blocking the event loop."""
        return self._atransform_stream_with_config(input, self._astream, config, **kwargs)

    def _answer(self, question: str) -> SelfFeedbackOutput:
        trace = Trace(question, observer=observe)
        context = self._context(trace, self.retriever.invoke(question))
        return context.output(self._loop.run(question, context.select, trace=trace))

    async def _aanswer(self, question: str) -> SelfFeedbackOutput:
        async with observing() as observer:
            trace = Trace(question, observer=observer)
            documents = await self.retriever.ainvoke(question)
            context = await run_in_executor(None, self._context, trace, documents)
            return context.output(await self._loop.arun(question, context.select, trace=trace))

    def _stream(self, inputs: Iterator[str]) -> Iterator[SelfFeedbackOutput]:
        question = "".join(inputs)
        yield _part(question=question)
        trace = Trace(question, observer=observe)
        context = self._context(trace, self.retriever.invoke(question))
        for piece in self._loop.stream(question, context.select, trace=trace, live_final=self.live_final):
            yield context.piece(piece)

    async def _astream(self, inputs: AsyncIterator[str]) -> AsyncIterator[SelfFeedbackOutput]:
        question = "".join([part async for part in inputs])
        yield _part(question=question)
        async with observing() as observer:
            trace = Trace(question, observer=observer)
            documents = await self.retriever.ainvoke(question)
            context = await run_in_executor(None, self._context, trace, documents)
            pieces = self._loop.astream(question, context.select, trace=trace, live_final=self.live_final)
            async with aclosing(pieces):
                async for piece in pieces:
                    yield context.piece(piece)

    def _context(self, trace: Trace, documents: list[Document]) -> "_Context":
        candidates = self.compressor.candidates(documents)
        with trace.stage("rank") as stage:
            stage.outcome = ranked = self.compressor.rank(trace.question, candidates)
        return _Context(self.compressor, documents, candidates, ranked, trace)


class _Context(NamedTuple):
    """What was found for one question, ranked once, of which each round takes more or less."""

    compressor: GradientSelectionCompressor
    documents: list[Document]
    candidates: list[Candidate]
    ranked: list[Candidate]
    trace: Trace

    def select(self, min_k: int) -> Selection:
        return self.compressor.selector().select_at(self.ranked, min_k)

    def output(self, answer: Answer) -> SelfFeedbackOutput:
        return SelfFeedbackOutput(
            question=self.trace.question,
            answer=answer.text,
            kind=answer.kind,
            context=kept_documents(answer.selection, self.documents, self.candidates),
            score=answer.judgement.score if answer.judgement else None,
            note=answer.note,
            trace=self.trace.to_dict(),
        )

    def piece(self, piece: str | Answer) -> SelfFeedbackOutput:
        """One part of a stream: a piece of the answer, or all else."""
        if isinstance(piece, str):
            return _part(answer=piece)
        return _part(**{k: v for k, v in self.output(piece).items() if k not in ("question", "answer")})


def _part(**values: Any) -> SelfFeedbackOutput:
    """A dictionary that LangChain can add up with others to a whole output."""
    return cast(SelfFeedbackOutput, AddableDict(values))
