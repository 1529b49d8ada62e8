"""Both adapters behind one set of words, for tests of what they share.

A piece is what is searched for or found: a node with a score, or a document.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import langchain_core.documents
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import Document, NodeWithScore, TextNode

import langchain_precise.convert
import llamaindex_precise.convert
from llamaindex_precise import PreciseEmbedding
from llamaindex_precise.events import PreciseStageEvent
from precise_rag.facts import read_facts
from precise_rag.testing import HashEncoder


class HashEmbedding(PreciseEmbedding):
    """The encoder of tests as a LlamaIndex embedding."""

    model_name: str = "hash"

    @cached_property
    def encoder(self) -> HashEncoder:
        return HashEncoder()


class Answer(NamedTuple):
    """What a self-feedback component returns. facts: its score, note, trace and more."""

    text: str
    sources: list[Any]
    facts: dict[str, Any]


class Events(BaseEventHandler):
    """Keeps every instrumentation event."""

    seen: list[BaseEvent]

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        self.seen.append(event)


@contextmanager
def events_of_llamaindex() -> Iterator[list[BaseEvent]]:
    """The events that are sent meanwhile, in order."""
    handler, root = Events(seen=[]), get_dispatcher()
    root.add_event_handler(handler)
    yield handler.seen
    root.event_handlers.remove(handler)


class LlamaIndex:
    """Nodes, postprocessors, node parsers and query engines."""

    name = "llamaindex"
    convert = llamaindex_precise.convert
    retriever: Any = llamaindex_precise.PreciseRetriever
    loop: Any = llamaindex_precise.SelfFeedbackQueryEngine
    k = "similarity_top_k"
    encoder = "embed_model"

    def document(self, text: str, id: str, **metadata: Any) -> Document:
        return Document(text=text, doc_id=id, metadata=metadata)

    def piece(
        self, text: str, id: str | None = None, score: float | None = None, **metadata: Any
    ) -> NodeWithScore:
        named = {"id_": id} if id else {}
        return NodeWithScore(node=TextNode(text=text, metadata=metadata, **named), score=score)

    def text(self, piece: Any) -> str:
        return piece.node.text

    def id(self, piece: Any) -> str | None:
        return piece.node.node_id

    def score(self, piece: Any) -> float | None:
        return piece.score

    def metadata(self, piece: Any) -> dict[str, Any]:
        return piece.node.metadata

    def place(self, piece: Any) -> tuple[str | None, int | None, int | None]:
        """The id of the document and the offsets there."""
        return piece.node.ref_doc_id, piece.node.start_char_idx, piece.node.end_char_idx

    def part(self, name: str, **settings: Any) -> Any:
        """A component that takes pieces and returns some of them: "Evidence", "Redundancy" or another."""
        names = {"Rerank": "PreciseRerank"}
        return getattr(llamaindex_precise, f"{names.get(name, name)}Postprocessor")(**settings)

    def cut(self, part: Any, pieces: Sequence[Any], query: str) -> list[Any]:
        return part.postprocess_nodes(pieces, query_str=query)

    async def acut(self, part: Any, pieces: Sequence[Any], query: str) -> list[Any]:
        return await part.apostprocess_nodes(pieces, query_str=query)

    def stages_of_cut(self, part: Any, pieces: Sequence[Any], query: str) -> list[dict[str, Any]]:
        """The records of stages that are announced while a part works."""
        with events_of_llamaindex() as seen:
            self.cut(part, pieces, query)
        return [event.record for event in seen if isinstance(event, PreciseStageEvent)]

    def splitter(self, name: str, **settings: Any) -> Any:
        return getattr(llamaindex_precise, f"{name}NodeParser")(**settings)

    def split(self, splitter: Any, documents: Sequence[Any]) -> list[Any]:
        return [NodeWithScore(node=node) for node in splitter.get_nodes_from_documents(documents)]

    def find(self, retriever: Any, query: str) -> list[Any]:
        return retriever.retrieve(query)

    async def afind(self, retriever: Any, query: str) -> list[Any]:
        return await retriever.aretrieve(query)

    def filtered(self, wanted: Any) -> dict[str, Any]:
        """The argument of a retriever's constructor for a filter."""
        return {"filters": wanted}

    def find_where(self, retriever: Any, query: str, wanted: Any) -> list[Any]:
        retriever.filters = wanted
        return retriever.retrieve(query)

    def stock(self, documents: Sequence[Any]) -> Any:
        """The framework's own store of whole documents or pieces."""
        nodes = [getattr(document, "node", document) for document in documents]
        return VectorStoreIndex(nodes, embed_model=HashEmbedding())

    def stock_retriever(self, store: Any, k: int) -> Any:
        return store.as_retriever(similarity_top_k=k)

    def answer(self, loop: Any, question: str) -> Answer:
        response = loop.query(question)
        return Answer(str(response), response.source_nodes, response.metadata["precise"])


class LangChain:
    """Documents, compressors, text splitters and chains."""

    name = "langchain"
    convert = langchain_precise.convert
    retriever: Any = langchain_precise.PreciseRetriever
    loop: Any = langchain_precise.SelfFeedbackChain
    k = "k"
    encoder = "embeddings"

    def document(self, text: str, id: str, **metadata: Any) -> langchain_core.documents.Document:
        return langchain_core.documents.Document(text, id=id, metadata=metadata)

    def piece(self, text: str, id: str | None = None, score: float | None = None, **metadata: Any) -> Any:
        scored = {} if score is None else {"relevance_score": score}
        return langchain_core.documents.Document(text, id=id, metadata=metadata | scored)

    def text(self, piece: Any) -> str:
        return piece.page_content

    def id(self, piece: Any) -> str | None:
        return piece.id

    def score(self, piece: Any) -> float | None:
        return read_facts(piece).get("score")

    def metadata(self, piece: Any) -> dict[str, Any]:
        return piece.metadata

    def place(self, piece: Any) -> tuple[str | None, int | None, int | None]:
        facts = read_facts(piece)
        return facts["doc_id"], facts["start"], facts["end"]

    def part(self, name: str, **settings: Any) -> Any:
        return getattr(langchain_precise, f"{name}Compressor")(**settings)

    def cut(self, part: Any, pieces: Sequence[Any], query: str) -> list[Any]:
        return part.compress_documents(pieces, query)

    async def acut(self, part: Any, pieces: Sequence[Any], query: str) -> list[Any]:
        return await part.acompress_documents(pieces, query)

    def stages_of_cut(self, part: Any, pieces: Sequence[Any], query: str) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = []

        class Heard(BaseCallbackHandler):
            def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
                if name == "precise_rag_stage":
                    records.append(data)

        part.compress_documents(pieces, query, callbacks=[Heard()])
        return records

    def splitter(self, name: str, **settings: Any) -> Any:
        words = {"embed_model": self.encoder}
        make = getattr(langchain_precise, f"{name}TextSplitter")
        return make(**{words.get(key, key): value for key, value in settings.items()})

    def split(self, splitter: Any, documents: Sequence[Any]) -> list[Any]:
        return splitter.split_documents(documents)

    def find(self, retriever: Any, query: str) -> list[Any]:
        return retriever.invoke(query)

    async def afind(self, retriever: Any, query: str) -> list[Any]:
        return await retriever.ainvoke(query)

    def filtered(self, wanted: Any) -> dict[str, Any]:
        return {"search_kwargs": {"filter": wanted}}

    def find_where(self, retriever: Any, query: str, wanted: Any) -> list[Any]:
        return retriever.invoke(query, filter=wanted)

    def stock(self, documents: Sequence[Any]) -> Any:
        store = InMemoryVectorStore(langchain_precise.PreciseEmbeddings(HashEncoder()))
        store.add_documents(list(documents))
        return store

    def stock_retriever(self, store: Any, k: int) -> Any:
        return store.as_retriever(search_kwargs={"k": k})

    def answer(self, loop: Any, question: str) -> Answer:
        output = loop.invoke(question)
        return Answer(output["answer"], output["context"], output)


LLAMAINDEX, LANGCHAIN = LlamaIndex(), LangChain()
FRAMEWORKS: dict[str, LlamaIndex | LangChain] = {one.name: one for one in (LLAMAINDEX, LANGCHAIN)}
each_framework = pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=FRAMEWORKS)
