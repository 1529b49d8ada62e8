"""A chain that judges its answers and tries again with more or less context."""

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
from langchain_precise.convert import from_selection
from langchain_precise.events import observe, observing
from precise_rag.answer import Answer
from precise_rag.feedback import FeedbackController, FeedbackLoop
from precise_rag.llm import Budget, load_llm
from precise_rag.prompts import AnswerStyle, JudgeStyle, Wording
from precise_rag.selection import GradientSelector
from precise_rag.trace import PriceTable, Trace
from precise_rag.types import Candidate, Selection

_CONTROLLER = FeedbackController()
_WORDING = Wording()


class SelfFeedbackOutput(TypedDict):
    """The output for one question.

    kind: "generated", or "context" if no model was asked.
    context: the documents that the answer was written from, best first.
    score: the judge's, from 1 to 10, or None if the answer was not judged.
    note: why the loop stopped.
    trace: every stage, model call and round, as JSON values.
    """

    question: str
    answer: str
    kind: Literal["generated", "context"]
    context: list[Document]
    score: int | None
    note: str
    trace: dict[str, Any]


class SelfFeedbackChain(RunnableSerializable[str, SelfFeedbackOutput]):
    """Chain that has its answer judged and tries again with more or less context (SAGE, section VI).

    The best-judged answer is returned, with its own context.

    retriever: any Runnable from a question to documents; give it a large `k`, from which `compressor`
    takes a part.
    llm: writes the answers; a chat model, or anything else that `load_llm` takes.
    judge: judges them; default `llm`.
    compressor: ranks the documents once and selects from them in each round.
    accept, max_rounds, reach: as in `FeedbackController`.
    live_final: stream the last draft allowed while the model writes it, and judge it afterwards.
    The other fields are those of `FeedbackLoop`.

    A stream consists of dictionaries that add up to the output of `invoke`: the question, the answer
    in pieces once it is accepted, and the rest.
    """

    retriever: RetrieverLike
    llm: Any
    judge: Any = None
    compressor: GradientSelectionCompressor = Field(default_factory=GradientSelectionCompressor)
    accept: int = _CONTROLLER.accept
    max_rounds: int = _CONTROLLER.max_rounds
    reach: int = _CONTROLLER.reach
    budget: Budget | None = None
    style: AnswerStyle = _WORDING.style
    judge_prompt: JudgeStyle = _WORDING.judge_style
    answer_instructions: str | None = None
    judge_instructions: str | None = None
    prices: PriceTable | None = None
    live_final: bool = False

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")
    _loop: FeedbackLoop = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the models and settings now, not at the first question."""
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
        """Return the best-judged answer, its context and its trace."""
        return self._call_with_config(self._answer, input, config, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> SelfFeedbackOutput:
        """Run `invoke` without blocking the event loop."""
        return await self._acall_with_config(self._aanswer, input, config, **kwargs)

    def stream(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[SelfFeedbackOutput]:
        """Yield dictionaries that add up to the output of `invoke`."""
        return self.transform(iter([input]), config, **kwargs)

    def transform(
        self, input: Iterator[str], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[SelfFeedbackOutput]:
        """Run `stream` for a question that comes in pieces."""
        return self._transform_stream_with_config(input, self._stream, config, **kwargs)

    def astream(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[SelfFeedbackOutput]:
        """Run `stream` without blocking the event loop."""

        async def once() -> AsyncIterator[str]:
            yield input

        return self.atransform(once(), config, **kwargs)

    def atransform(
        self, input: AsyncIterator[str], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[SelfFeedbackOutput]:
        """Run `transform` without blocking the event loop."""
        return self._atransform_stream_with_config(input, self._astream, config, **kwargs)

    def _answer(self, question: str) -> SelfFeedbackOutput:
        trace = Trace(question, observer=observe)
        results = self._rank(trace, self.retriever.invoke(question))
        return results.output(self._loop.run(question, results.select, trace=trace))

    async def _aanswer(self, question: str) -> SelfFeedbackOutput:
        async with observing() as observer:
            trace = Trace(question, observer=observer)
            documents = await self.retriever.ainvoke(question)
            results = await run_in_executor(None, self._rank, trace, documents)
            return results.output(await self._loop.arun(question, results.select, trace=trace))

    def _stream(self, inputs: Iterator[str]) -> Iterator[SelfFeedbackOutput]:
        question = "".join(inputs)
        yield _part(question=question)
        trace = Trace(question, observer=observe)
        results = self._rank(trace, self.retriever.invoke(question))
        for piece in self._loop.stream(question, results.select, trace=trace, live_final=self.live_final):
            yield results.piece(piece)

    async def _astream(self, inputs: AsyncIterator[str]) -> AsyncIterator[SelfFeedbackOutput]:
        question = "".join([part async for part in inputs])
        yield _part(question=question)
        async with observing() as observer:
            trace = Trace(question, observer=observer)
            documents = await self.retriever.ainvoke(question)
            results = await run_in_executor(None, self._rank, trace, documents)
            pieces = self._loop.astream(question, results.select, trace=trace, live_final=self.live_final)
            async with aclosing(pieces):
                async for piece in pieces:
                    yield results.piece(piece)

    def _rank(self, trace: Trace, documents: list[Document]) -> "_RankedResults":
        candidates = self.compressor.candidates(documents)
        ranked = list(self.compressor.rank(candidates, trace.question, trace))
        return _RankedResults(self.compressor.selector(), documents, ranked, trace)


class _RankedResults(NamedTuple):
    """The retrieved documents of one question, ranked once; each round selects from them again."""

    selector: GradientSelector
    documents: list[Document]
    ranked: list[Candidate]
    trace: Trace

    def select(self, min_k: int) -> Selection:
        return self.selector.select_at(self.ranked, min_k)

    def output(self, answer: Answer) -> SelfFeedbackOutput:
        return SelfFeedbackOutput(
            question=self.trace.question,
            answer=answer.text,
            kind=answer.kind,
            context=from_selection(answer.selection, self.documents),
            score=answer.judgement.score if answer.judgement else None,
            note=answer.note,
            trace=self.trace.to_dict(),
        )

    def piece(self, piece: str | Answer) -> SelfFeedbackOutput:
        """Return one part of a stream: a piece of the answer, or the rest of the output."""
        if isinstance(piece, str):
            return _part(answer=piece)
        return _part(**{k: v for k, v in self.output(piece).items() if k not in ("question", "answer")})


def _part(**values: Any) -> SelfFeedbackOutput:
    """Return a dictionary that LangChain can add to others."""
    return cast(SelfFeedbackOutput, AddableDict(values))
