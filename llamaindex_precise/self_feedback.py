"""A query engine whose answers judge themselves and ask for more or less context."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Self, TypeVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixin, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.settings import Settings

from llamaindex_precise.convert import FACTS, from_selection
from llamaindex_precise.events import trace_events
from llamaindex_precise.postprocessors import GradientSelectionPostprocessor
from precise_rag.answer import Answer
from precise_rag.feedback import FeedbackController, FeedbackLoop
from precise_rag.llm import load_llm
from precise_rag.prompts import answer_instructions, judge_instructions
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Selection

dispatcher = get_dispatcher(__name__)

_CONTROLLER = FeedbackController()
_R = TypeVar("_R", Response, StreamingResponse, AsyncStreamingResponse)


class AnswerFacts(dict[str, Any]):
    """How an answer came about, as plain values: kind, score, note, trace.

    As text it is its note alone: an engine behind another one is read with its metadata in the prompt.
    """

    def __str__(self) -> str:
        return str(self["note"])


class SelfFeedbackQueryEngine(BaseQueryEngine):
    """Answers from what a retriever finds, judges the answer and, where it is weak, answers again
    from more or less context; the best answer seen is returned (SAGE, section VI).

    retriever: any; give it a large top k, since `selection` decides how much the model gets to see.
    llm: writes the answers; by default `Settings.llm`. judge_llm: judges them, by default `llm`.
    node_postprocessors: applied once, before the selection. accept, max_rounds, reach: as in
    FeedbackController. loop_options: as in FeedbackLoop, such as `budget`, `style`, `judge_prompt`.

    streaming: responses carry a generator of the accepted answer, not yet read. live_final: the
    last draft allowed is streamed while the model writes it; with `max_rounds=0`, every answer.
    Sources are those of the answer; `response.metadata["precise_rag"]` holds the judge's score, why
    it stopped there, and the whole trace.
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        llm: LLM | None = None,
        judge_llm: LLM | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        selection: GradientSelectionPostprocessor | None = None,
        *,
        accept: int = _CONTROLLER.accept,
        max_rounds: int = _CONTROLLER.max_rounds,
        reach: int = _CONTROLLER.reach,
        streaming: bool = False,
        live_final: bool = False,
        callback_manager: CallbackManager | None = None,
        **loop_options: Any,
    ) -> None:
        super().__init__(callback_manager or Settings.callback_manager)
        self.retriever = retriever
        self.node_postprocessors = list(node_postprocessors or [])
        for postprocessor in self.node_postprocessors:
            postprocessor.callback_manager = self.callback_manager
        self.selection = selection or GradientSelectionPostprocessor()
        self.streaming = streaming
        self.live_final = live_final or max_rounds == 0
        self._loop = FeedbackLoop(
            load_llm(llm or Settings.llm),
            judge=None if judge_llm is None else load_llm(judge_llm),
            controller=FeedbackController(
                min_k=self.selection.min_k, accept=accept, max_rounds=max_rounds, reach=reach
            ),
            **loop_options,
        )

    @classmethod
    def from_args(cls, retriever: BaseRetriever, llm: LLM | None = None, **kwargs: Any) -> Self:
        """The engine over `retriever`; `kwargs` go to the constructor."""
        return cls(retriever, llm, **kwargs)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Everything the selection may take from: retrieved and postprocessed."""
        nodes = self.retriever.retrieve(query_bundle)
        for postprocessor in self.node_postprocessors:
            nodes = postprocessor.postprocess_nodes(nodes, query_bundle=query_bundle)
        return nodes

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """`retrieve` without blocking the event loop."""
        nodes = await self.retriever.aretrieve(query_bundle)
        for postprocessor in self.node_postprocessors:
            nodes = await postprocessor.apostprocess_nodes(nodes, query_bundle=query_bundle)
        return nodes

    @dispatcher.span
    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """The best answer from a selection of `nodes`."""
        dispatcher.event(SynthesizeStartEvent(query=query_bundle))
        context = self._context(query_bundle, nodes, additional_source_nodes)
        if self.streaming:
            response: RESPONSE_TYPE = self._stream(context)
        else:
            answer = self._loop.run(context.question, context.select, trace=context.trace)
            response = context.fill(Response(answer.text), answer)
        dispatcher.event(SynthesizeEndEvent(query=query_bundle, response=response))
        return response

    @dispatcher.span
    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """`synthesize` without blocking the event loop."""
        dispatcher.event(SynthesizeStartEvent(query=query_bundle))
        context = await asyncio.to_thread(self._context, query_bundle, nodes, additional_source_nodes)
        if self.streaming:
            response: RESPONSE_TYPE = await self._astream(context)
        else:
            answer = await self._loop.arun(context.question, context.select, trace=context.trace)
            response = context.fill(Response(answer.text), answer)
        dispatcher.event(SynthesizeEndEvent(query=query_bundle, response=response))
        return response

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            response = self.synthesize(query_bundle, self.retrieve(query_bundle))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            response = await self.asynthesize(query_bundle, await self.aretrieve(query_bundle))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _get_prompts(self) -> PromptDictType:
        """What the models are told; documents and questions are set apart from it as data."""
        answer = self._loop.answer_instructions or answer_instructions(self._loop.style)
        judge = self._loop.judge_instructions or judge_instructions(self._loop.judge_prompt)
        return {"answer_instructions": PromptTemplate(answer), "judge_instructions": PromptTemplate(judge)}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        if "answer_instructions" in prompts:
            self._loop.answer_instructions = prompts["answer_instructions"].get_template()
        if "judge_instructions" in prompts:
            self._loop.judge_instructions = prompts["judge_instructions"].get_template()

    def _get_prompt_modules(self) -> PromptMixinType:
        stages = {"retriever": self.retriever} | {
            f"node_postprocessor_{i}": stage for i, stage in enumerate(self.node_postprocessors)
        }
        return {name: stage for name, stage in stages.items() if isinstance(stage, PromptMixin)}

    def _context(
        self,
        query_bundle: QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional: Sequence[NodeWithScore] | None,
    ) -> "_Context":
        """What was found, ranked once; each round takes more or less of it."""
        trace = Trace(query_bundle.query_str, observer=trace_events(dispatcher))
        with trace.stage("rank") as stage:
            stage.outcome = ranked = self.selection.rank(nodes, query_bundle)
        return _Context(self.selection, nodes, list(additional or []), ranked, trace)

    def _stream(self, context: "_Context") -> StreamingResponse:
        items = self._loop.stream(
            context.question, context.select, trace=context.trace, live_final=self.live_final
        )
        ready = [next(items)] if self.live_final else list(items)

        def pieces() -> Generator[str, None, None]:
            for item in chain(ready, items):
                if isinstance(item, str):
                    yield item
                else:
                    context.fill(response, item)

        response = context.fill(StreamingResponse(pieces()))
        if isinstance(ready[-1], Answer):
            context.fill(response, ready[-1])
        return response

    async def _astream(self, context: "_Context") -> AsyncStreamingResponse:
        items = self._loop.astream(
            context.question, context.select, trace=context.trace, live_final=self.live_final
        )
        ready = [await anext(items)] if self.live_final else [item async for item in items]

        async def pieces() -> AsyncGenerator[str, None]:
            async with aclosing(items):
                for item in ready:
                    if isinstance(item, str):
                        yield item
                async for item in items:
                    if isinstance(item, str):
                        yield item
                    else:
                        context.fill(response, item)

        response = context.fill(AsyncStreamingResponse(pieces()))
        if isinstance(ready[-1], Answer):
            context.fill(response, ready[-1])
        return response


@dataclass(slots=True)
class _Context:
    """What was found for one question, ranked once, of which each round takes more or less."""

    selection: GradientSelectionPostprocessor
    nodes: Sequence[NodeWithScore]
    additional: list[NodeWithScore]
    ranked: list[Candidate]
    trace: Trace
    selected: Selection = field(default_factory=Selection)

    @property
    def question(self) -> str:
        return self.trace.question

    def select(self, min_k: int) -> Selection:
        self.selected = self.selection.selector().select_at(self.ranked, min_k)
        return self.selected

    def fill(self, response: _R, answer: Answer | None = None) -> _R:
        """The response with its sources and, once there is an answer, how it came about."""
        selection = answer.selection if answer else self.selected
        sources = from_selection(selection, self.nodes) + self.additional
        metadata: dict[str, Any] = {
            item.node.node_id: {key: value for key, value in item.node.metadata.items() if key != FACTS}
            for item in sources
        }
        if answer:
            metadata[FACTS] = AnswerFacts(
                kind=answer.kind,
                score=answer.judgement.score if answer.judgement else None,
                note=answer.note,
                trace=self.trace.to_dict(),
            )
        response.source_nodes, response.metadata = sources, metadata
        return response
