"""A query engine that judges its answers and tries again with more or less context."""

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

from llamaindex_precise.convert import from_selection
from llamaindex_precise.events import observing
from llamaindex_precise.postprocessors import GradientSelectionPostprocessor
from precise_rag._processes import Portable
from precise_rag.answer import Answer
from precise_rag.facts import FACTS_KEY
from precise_rag.feedback import FeedbackController, FeedbackLoop
from precise_rag.llm import load_llm
from precise_rag.prompts import answer_instructions, judge_instructions
from precise_rag.selection import GradientSelector
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Selection

dispatcher = get_dispatcher(__name__)

_CONTROLLER = FeedbackController()
_R = TypeVar("_R", Response, StreamingResponse, AsyncStreamingResponse)


class AnswerFacts(dict[str, Any]):
    """The facts about an answer, as JSON values: kind, score, note, trace.

    `str` gives the note alone, because an outer engine writes the metadata of this one into its prompt.
    """

    def __str__(self) -> str:
        return str(self["note"])


class SelfFeedbackQueryEngine(Portable, BaseQueryEngine):
    """Query engine that has its answer judged and tries again with more or less context (SAGE, section VI).

    The best-judged answer is returned, with its own sources;
    `response.metadata["precise_rag"]` holds kind, score, note (why the loop stopped) and the trace.

    retriever: any LlamaIndex retriever; give it a large top k, from which `selection` takes a part.
    llm: writes the answers; default `Settings.llm`.
    judge_llm: judges them; default `llm`.
    node_postprocessors: applied once, before the selection.
    selection: ranks the nodes once and selects from them in each round.
    accept, max_rounds, reach: as in `FeedbackController`.
    streaming: return a response with a generator of the accepted answer, not yet read.
    live_final: stream the last draft allowed while the model writes it, and judge it afterwards; with
    `max_rounds=0` that is every answer.
    loop_options: further options of `FeedbackLoop`, such as `budget`, `style`, `judge_prompt`.
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
        """Return an engine over `retriever`; `kwargs` go to the constructor."""
        return cls(retriever, llm, **kwargs)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the retrieved and postprocessed nodes, from which the selection takes a part."""
        nodes = self.retriever.retrieve(query_bundle)
        for postprocessor in self.node_postprocessors:
            nodes = postprocessor.postprocess_nodes(nodes, query_bundle=query_bundle)
        return nodes

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Run `retrieve` without blocking the event loop."""
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
        """Return the best-judged answer from selections of `nodes`."""
        dispatcher.event(SynthesizeStartEvent(query=query_bundle))
        results = self._rank(query_bundle, nodes, additional_source_nodes)
        if self.streaming:
            response: RESPONSE_TYPE = self._stream(results)
        else:
            answer = self._loop.run(results.question, results.select, trace=results.trace)
            response = results.fill(Response(answer.text), answer)
        dispatcher.event(SynthesizeEndEvent(query=query_bundle, response=response))
        return response

    @dispatcher.span
    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Run `synthesize` without blocking the event loop."""
        dispatcher.event(SynthesizeStartEvent(query=query_bundle))
        results = await asyncio.to_thread(self._rank, query_bundle, nodes, additional_source_nodes)
        if self.streaming:
            response: RESPONSE_TYPE = await self._astream(results)
        else:
            answer = await self._loop.arun(results.question, results.select, trace=results.trace)
            response = results.fill(Response(answer.text), answer)
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

    def _rank(
        self,
        query_bundle: QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional: Sequence[NodeWithScore] | None,
    ) -> "_RankedResults":
        trace = Trace(query_bundle.query_str, observer=observing(dispatcher))
        candidates = self.selection.candidates(nodes)
        ranked = list(self.selection.rank(candidates, trace.question, trace))
        return _RankedResults(self.selection.selector(), nodes, list(additional or []), ranked, trace)

    def _stream(self, results: "_RankedResults") -> StreamingResponse:
        items = self._loop.stream(
            results.question, results.select, trace=results.trace, live_final=self.live_final
        )
        ready = [next(items)] if self.live_final else list(items)

        def pieces() -> Generator[str, None, None]:
            for item in chain(ready, items):
                if isinstance(item, str):
                    yield item
                else:
                    results.fill(response, item)

        response = results.fill(StreamingResponse(pieces()))
        if isinstance(ready[-1], Answer):
            results.fill(response, ready[-1])
        return response

    async def _astream(self, results: "_RankedResults") -> AsyncStreamingResponse:
        items = self._loop.astream(
            results.question, results.select, trace=results.trace, live_final=self.live_final
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
                        results.fill(response, item)

        response = results.fill(AsyncStreamingResponse(pieces()))
        if isinstance(ready[-1], Answer):
            results.fill(response, ready[-1])
        return response


@dataclass(slots=True)
class _RankedResults:
    """The retrieved nodes of one question, ranked once; each round selects from them again."""

    selector: GradientSelector
    nodes: Sequence[NodeWithScore]
    additional: list[NodeWithScore]
    ranked: list[Candidate]
    trace: Trace
    selected: Selection = field(default_factory=Selection)

    @property
    def question(self) -> str:
        return self.trace.question

    def select(self, min_k: int) -> Selection:
        self.selected = self.selector.select_at(self.ranked, min_k)
        return self.selected

    def fill(self, response: _R, answer: Answer | None = None) -> _R:
        """Set the response's sources and, once there is an answer, the facts about it."""
        selection = answer.selection if answer else self.selected
        sources = from_selection(selection, self.nodes) + self.additional
        metadata: dict[str, Any] = {
            item.node.node_id: {key: value for key, value in item.node.metadata.items() if key != FACTS_KEY}
            for item in sources
        }
        if answer:
            metadata[FACTS_KEY] = AnswerFacts(
                kind=answer.kind,
                score=answer.judgement.score if answer.judgement else None,
                note=answer.note,
                trace=self.trace.to_dict(),
            )
        response.source_nodes, response.metadata = sources, metadata
        return response
