"""A script that the reranker does not read is told: a mark in the metadata, a note in the stage's record."""

from langchain_core.callbacks import BaseCallbackHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler

from llamaindex_precise.events import PreciseStageEvent
from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder
from support.frameworks import LANGCHAIN, LLAMAINDEX
from support.velm import documents


def test_a_script_that_is_not_read_is_told_in_both_frameworks(monkeypatch):
    query = "Кто починил колесо?"
    told = "ranked by words and order: the reranker does not read Cyrillic"
    notes: dict[str, list[str]] = {"llamaindex": [], "langchain": []}

    class Heard(BaseEventHandler):
        def handle(self, event, **_):
            if isinstance(event, PreciseStageEvent) and event.record["stage"] == "rerank":
                notes["llamaindex"].append(event.record["note"])

    class Callback(BaseCallbackHandler):
        def on_custom_event(self, name, data, **_):
            if data.get("stage") == "rerank":
                notes["langchain"].append(data["note"])

    monkeypatch.setattr(get_dispatcher(), "event_handlers", [Heard()])
    over, other = (
        framework.retriever.from_documents(documents(framework), HashEncoder())
        for framework in (LLAMAINDEX, LANGCHAIN)
    )
    nodes = over.retrieve(query)
    found = other.invoke(query, {"callbacks": [Callback()]})
    nodes += LLAMAINDEX.cut(LLAMAINDEX.part("GradientSelection"), [LLAMAINDEX.piece("A mill.")], query)
    compressor, stock = LANGCHAIN.part("GradientSelection"), [LANGCHAIN.piece("A mill.")]
    found += compressor.compress_documents(stock, query, callbacks=[Callback()])
    assert notes == {"llamaindex": [told] * 2, "langchain": [told] * 2}
    marks = [read_facts(document)["scores"]["unread"] for document in found]
    assert marks == [read_facts(item.node)["scores"]["unread"] for item in nodes] == [1.0] * len(nodes)
