"""The records of a trace, and rerankings, as instrumentation events."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import Dispatcher
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle

from precise_rag.trace import CallRecord, Record, RoundRecord, StageRecord

__all__ = ["PreciseCallEvent", "PreciseRoundEvent", "PreciseStageEvent"]


class _RecordEvent(BaseEvent):
    record: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the event."""
        return cls.__name__


class PreciseStageEvent(_RecordEvent):
    """A stage ended: its settings and time, and each candidate's rank, score, decision and reason."""


class PreciseCallEvent(_RecordEvent):
    """A language model was called: role, prompt version, tokens, milliseconds, cost."""


class PreciseRoundEvent(_RecordEvent):
    """A draft was judged: its score, and the decision that follows."""


_EVENTS: dict[type[Record], type[_RecordEvent]] = {
    StageRecord: PreciseStageEvent,
    CallRecord: PreciseCallEvent,
    RoundRecord: PreciseRoundEvent,
}


def observing(dispatcher: Dispatcher) -> Callable[[Record], None]:
    """Return the observer for a Trace that sends each record through `dispatcher`."""

    def observe(record: Record) -> None:
        dispatcher.event(_EVENTS[type(record)](record=record.to_dict()))

    return observe


@contextmanager
def reranking(
    dispatcher: Dispatcher,
    callback_manager: CallbackManager,
    query: QueryBundle | None,
    nodes: list[NodeWithScore],
    model_name: str,
    top_n: int,
) -> Iterator[list[NodeWithScore]]:
    """Announce a reranking of `nodes`, as LlamaIndex's rerankers do; the block fills the list it gets."""
    dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=top_n, model_name=model_name))
    payload: dict[str, Any] = {
        EventPayload.NODES: nodes,
        EventPayload.MODEL_NAME: model_name,
        EventPayload.QUERY_STR: query.query_str if query else None,
        EventPayload.TOP_K: top_n,
    }
    reranked: list[NodeWithScore] = []
    with callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
        yield reranked
        event.on_end(payload={EventPayload.NODES: reranked})
    dispatcher.event(ReRankEndEvent(nodes=reranked))
