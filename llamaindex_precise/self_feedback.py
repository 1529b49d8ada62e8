"""A query engine that judges its answers and tries again with more or less context."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import aclosing
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
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.settings import Settings

from llamaindex_precise.convert import from_candidate, from_selection, to_candidates, to_core_documents
from llamaindex_precise.embeddings import EmbedModel, resolve_encoder
from llamaindex_precise.events import dispatcher, observe
from llamaindex_precise.filters import filter_for
from llamaindex_precise.sources import OverPipeline, RetrieverSource, query_vector
from precise_rag.answer import Answer
from precise_rag.checks import of_kind
from precise_rag.context import context_passages
from precise_rag.errors import InputError
from precise_rag.excerpts import Order
from precise_rag.facts import FACTS_KEY
from precise_rag.pipeline import PreciseRAG, check_pipeline
from precise_rag.trace import Trace
from precise_rag.types import Selection

_R = TypeVar("_R", Response, StreamingResponse, AsyncStreamingResponse)


class AnswerFacts(dict[str, Any]):
    """The facts about an answer, as JSON values: kind, score, note, question, citations, choice, trace.

    `str` gives the note alone, because an outer engine writes the metadata of this one into its prompt.
    """

    def __str__(self) -> str:
        return str(self["note"])


class SelfFeedbackQueryEngine(OverPipeline, BaseQueryEngine):
    """Query engine that has its answer judged and tries again with more or less context (SAGE, section VI).

    It configures one `PreciseRAG`, which splits what the retriever finds into sentences, reranks them, drops
    repetitions, grows and selects evidence, answers and judges. The best-judged answer is returned, with its
    own sources; `response.metadata["precise"]` holds kind, score, note (why the loop stopped), question,
    citations, choice and the trace. Over what a `PreciseRetriever` searches it is `from_rag(retriever.rag)`.

    retriever: any LlamaIndex retriever; give it a large top k, of which a part is sent.
    llm: writes the answers; default: that of `rag`, or else `Settings.llm`.
    node_postprocessors: applied to what the retriever finds.
    rag: a pipeline to use as it is, with `llm` if that is given, instead of `options` and the rest.
    streaming: return a response with a generator of the accepted answer, not yet read.
    live_final: stream the last draft allowed while the model writes it, and judge it afterwards; without
        feedback that is every answer.
    options: the other arguments of `PreciseRAG`, such as `preset`, `reranker`, `feedback` and `budget`.
    """

    def __init__(
        self,
        retriever: BaseRetriever | None = None,
        llm: LLM | Any = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        *,
        rag: PreciseRAG | None = None,
        streaming: bool = False,
        live_final: bool = False,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        super().__init__(callback_manager or Settings.callback_manager)
        if rag is None:
            if retriever is None:
                raise InputError("pass a retriever, or rag=")
            source = RetrieverSource(retriever, node_postprocessors or ())
            for postprocessor in source.node_postprocessors:
                postprocessor.callback_manager = self.callback_manager
            rag, llm = PreciseRAG(source, llm or Settings.llm, **options), None
        elif retriever is not None or node_postprocessors or options:
            raise InputError("a rag has its own retriever and stages; pass them to it instead")
        self.rag = check_pipeline(rag).with_llm(llm or (None if rag.llm else Settings._llm))
        self.streaming = of_kind("streaming", streaming, bool)
        self.live_final = of_kind("live_final", live_final, bool) or self.rag.feedback.max_rounds == 0

    @classmethod
    def from_rag(cls, rag: PreciseRAG, **kwargs: Any) -> Self:
        """Return an engine that answers by `rag`; kwargs: llm, streaming, live_final, callback_manager."""
        return cls(rag=rag, **kwargs)

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[BaseNode],
        llm: LLM | Any = None,
        embed_model: EmbedModel = None,
        *,
        streaming: bool = False,
        live_final: bool = False,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> Self:
        """Return an engine over a new index of `documents`, which may also be nodes.

        embed_model: as for the retrievers.
        options: of `PreciseRAG.from_documents`, such as `preset="chunkrag"`.
        """
        options = {"encoder": resolve_encoder(embed_model)} | options
        rag = PreciseRAG.from_documents(to_core_documents(documents), llm or Settings.llm, **options)
        return cls(rag=rag, streaming=streaming, live_final=live_final, callback_manager=callback_manager)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Return what is found, before it is reranked and selected."""
        source, wanted = self.rag.index, self.rag.filter
        if source is None:
            raise InputError("this pipeline has nothing to search; pass nodes to synthesize")
        if isinstance(source, RetrieverSource):
            found = source.search(query_bundle, filter=wanted)
        else:
            brought = self._brought(query_bundle) | ({"filter": wanted} if wanted is not None else {})
            top_k = getattr(source, "fetch_k", None) or self.rag.path.n_candidates
            found = source.search(query_bundle.query_str, top_k, **brought)
        return [from_candidate(candidate) for candidate in found]

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Run `retrieve` without blocking the event loop."""
        return await asyncio.to_thread(self.retrieve, query_bundle)

    @dispatcher.span
    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Return the best-judged answer from selections of `nodes`."""
        given: Any = {"candidates": to_candidates(nodes), "additional_source_nodes": additional_source_nodes}
        return self.answer(query_bundle.query_str, **given)

    @dispatcher.span
    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Run `synthesize` without blocking the event loop."""
        given: Any = {"candidates": to_candidates(nodes), "additional_source_nodes": additional_source_nodes}
        return await self.aanswer(query_bundle.query_str, **given)

    def answer(self, query: str, *, streaming: bool | None = None, **arguments: Any) -> RESPONSE_TYPE:
        """Return the response to a question.

        streaming: as for the constructor; default: as set there.
        arguments: of `PreciseRAG.answer`: `options` of a multiple-choice question, `history` (messages),
        `filter` (also MetadataFilters), `vector` and `candidates`; and
        `additional_source_nodes`, which are put behind the sources.
        """
        arguments, known = self._of_core(query, arguments)
        if not (self.streaming if streaming is None else streaming):
            answer = self.rag.answer(query, **arguments)
            return _fill(Response(answer.text), answer, *known)
        items = self.rag.stream(query, live_final=self.live_final, **arguments)
        ready = [next(items)] if self.live_final else list(items)

        def pieces() -> Generator[str, None, None]:
            for item in chain(ready, items):
                if isinstance(item, str):
                    yield item
                else:
                    _fill(response, item, *known)

        response = StreamingResponse(pieces())
        return _fill(response, ready[-1] if isinstance(ready[-1], Answer) else None, *known)

    async def aanswer(self, query: str, *, streaming: bool | None = None, **arguments: Any) -> RESPONSE_TYPE:
        """Run `answer` without blocking the event loop."""
        arguments, known = self._of_core(query, arguments)
        if not (self.streaming if streaming is None else streaming):
            answer = await self.rag.aanswer(query, **arguments)
            return _fill(Response(answer.text), answer, *known)
        items = self.rag.astream(query, live_final=self.live_final, **arguments)
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
                        _fill(response, item, *known)

        response = AsyncStreamingResponse(pieces())
        return _fill(response, ready[-1] if isinstance(ready[-1], Answer) else None, *known)

    def _of_core(self, query: str, given: dict[str, Any]) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """Return the arguments for the pipeline, and the further arguments of `_fill`."""
        trace, further = Trace(query, observer=observe), given.pop("additional_source_nodes", None) or ()
        own = {"trace": trace, "filter": filter_for(self.rag.index, given.get("filter"))}
        return given | own, (trace, self.rag.order, further)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            response = self.answer(query_bundle.query_str, **self._brought(query_bundle))
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            brought = await asyncio.to_thread(self._brought, query_bundle)
            response = await self.aanswer(query_bundle.query_str, **brought)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _brought(self, bundle: QueryBundle) -> dict[str, Any]:
        """Return what is searched for in place of the question, as HyDE names it: arguments of `answer`.

        A vector if an index is searched; of a retriever, which reads the bundle itself, what it finds.
        """
        if bundle.embedding is None and not bundle.custom_embedding_strs:
            return {}
        source = self.rag.index
        if isinstance(source, RetrieverSource):
            return {"candidates": source.search(bundle, filter=self.rag.filter)}
        return {"vector": query_vector(bundle, getattr(source, "encoder", None))}

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


def _fill(
    response: _R, answer: Answer | None, trace: Trace, order: Order, further: Sequence[NodeWithScore]
) -> _R:
    """Set the response's sources, the further ones last, and the facts about the answer, once it is there."""
    found = [Selection(), *(stage.selection for stage in trace.stages if stage.name == "selection")]
    passages = answer.passages if answer else context_passages(found[-1], order)
    sources: list[NodeWithScore] = from_selection(Selection.keep_all(passages))
    metadata: dict[str, Any] = {
        item.node.node_id: {key: value for key, value in item.node.metadata.items() if key != FACTS_KEY}
        for item in sources
    }
    if answer:
        metadata[FACTS_KEY] = AnswerFacts(answer.facts)
    response.source_nodes, response.metadata = [*sources, *further], metadata
    return response
