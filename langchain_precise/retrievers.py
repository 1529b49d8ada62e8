"""The retriever over the whole retrieval path."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.vectorstores import VectorStore
from pydantic import Field, SkipValidation

from langchain_precise.convert import from_selection, shown, to_core_documents
from langchain_precise.events import observe, observing
from langchain_precise.sources import StoreSource
from precise_rag.checks import of_kind, own_errors
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.excerpts import Form, excerpts_of
from precise_rag.pipeline import PreciseRAG, check_pipeline
from precise_rag.protocols import Index
from precise_rag.trace import Trace
from precise_rag.types import Selection, check_query


class PreciseRetriever(BaseRetriever):
    """Retriever that runs the whole path: search, reranking, filters and selection.

    It returns excerpts: verbatim parts of the documents in the order of the text, the document with the best
    one first, see `excerpts_of`. The score of an excerpt is that of its best sentence; `read_facts` lists
    its sentences. `DOCUMENT_PROMPT` writes an excerpt with what stands above it.

    rag: the pipeline, of which the retrieval part is used. With `order="score"` it returns single sentences,
        best first.
    k: return exactly the best `k` sentences, best first in any `order`, if there are as many; default:
        excerpts of what the selection keeps.
    search_kwargs: a "filter" for all calls, such as `{"filter": {"year": 2020}}`, and a "k", which is the
        field `k` and goes before it. `rag` keeps the filter, too, but not one that is set later.
    Both can be set for a call, whose filter narrows that of all: `invoke(query, k=3, filter={"year": 2020})`.
    """

    rag: SkipValidation[PreciseRAG]
    k: int | None = Field(default=None, ge=1)
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, rag: PreciseRAG | None = None, **fields: Any) -> None:
        rag, known = check_pipeline(rag), type(self).model_fields
        kept = dict(of_kind("search_kwargs", fields.get("search_kwargs"), Mapping, dict))
        if unknown := (kept.keys() - {"filter", "k"}) | (fields.keys() - known):
            told = f'{", ".join(known)}, with "filter" and "k" in search_kwargs'
            raise InputError(f"{type(self).__name__} has {told}; got {', '.join(map(str, unknown))}")
        k, rag = kept.pop("k", fields.get("k")), rag.with_filter(kept.pop("filter", None))
        with own_errors(type(self).__name__):
            super().__init__(**fields | {"rag": rag, "search_kwargs": kept, "k": k})

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        embeddings: Any = DEFAULT_ENCODER,
        *,
        k: int | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Return a retriever over a new index of `documents`.

        embeddings: LangChain's, a core encoder, or the name or path of one; default: the offline encoder.
        k, search_kwargs: as for the constructor.
        options: of `PreciseRAG.from_documents`, such as `preset="sage"`.
        """
        options = {"encoder": load_encoder(embeddings, argument="embeddings")} | options
        rag = PreciseRAG.from_documents(to_core_documents(documents), **options)
        return cls(rag=rag, k=k, search_kwargs=search_kwargs)

    @classmethod
    def from_index(
        cls,
        index: Index,
        *,
        k: int | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Return a retriever over an existing index; `options` go to `PreciseRAG`."""
        return cls(rag=PreciseRAG(index, **options), k=k, search_kwargs=search_kwargs)

    @classmethod
    def from_store(
        cls,
        store: VectorStore,
        *,
        k: int | None = None,
        fetch_k: int = 20,
        filter: Any = None,
        search_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Return a retriever over the chunks of a vector store that you have; nothing is indexed again.

        The sentences of the chunks that the store finds are reranked and grow to evidence.

        store: a LangChain vector store.
        fetch_k: chunks to fetch from the store for each question; more are fetched where a few documents or
            texts take all places.
        filter: for all calls, in the store's own form; a call can then bring no other.
        search_kwargs: other options of the store's search.
        options: of `PreciseRAG`.
        """
        if "k" in (search_kwargs or {}):
            raise InputError("the k of a store's search is fetch_k= here; k= is how many pieces to return")
        return cls(rag=PreciseRAG(StoreSource(store, fetch_k, search_kwargs or {}, filter), **options), k=k)

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        """Index more documents and return their ids; one with a known id replaces the old one."""
        added = to_core_documents(documents)
        self.rag.own_index.add(added)
        return [document.id for document in added]

    def delete(self, ids: Iterable[str]) -> None:
        """Remove documents by id. Raises InputError, changing nothing, if an id is unknown."""
        self.rag.own_index.delete(ids)

    def select(self, query: str, *, k: int | None = None, filter: Any = None) -> Selection:
        """Return the decision on each candidate: kept or dropped, with its score and the reason."""
        return self._retrieve(self._search(query, k, filter), Trace(query))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        search = self._search(query, **options)
        return self._documents(self._path.invoke(search, {"callbacks": run_manager.get_child()}), search)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        search = self._search(query, **options)
        selection = await self._path.ainvoke(search, {"callbacks": run_manager.get_child()})
        return self._documents(selection, search)

    def _search(self, query: str, k: int | None = None, filter: Any = None, **other: Any) -> dict[str, Any]:
        """Return what a call searches for; what it does not say is as set for all calls."""
        call = of_kind("search_kwargs", other.pop("search_kwargs", None), Mapping, dict)
        asked = {"k": self.k, **self.search_kwargs, "filter": None, **call}
        asked |= {name: value for name, value in (("k", k), ("filter", filter)) if value is not None}
        if unknown := (other.keys() | asked.keys()) - {"k", "filter"}:
            raise InputError(f"a call takes k, filter and search_kwargs, got {', '.join(sorted(unknown))}")
        return {"query": check_query(query), **asked}

    def _documents(self, selection: Selection, search: Mapping[str, Any]) -> list[Document]:
        return from_selection(Selection.keep_all(excerpts_of(selection, self._pipeline(search["k"]).order)))

    def _pipeline(self, k: int | None) -> PreciseRAG:
        return self.rag.with_filter(self.search_kwargs.get("filter")).with_k(k)

    @property
    def _path(self) -> Runnable[dict[str, Any], Selection]:
        """The path as a child run, so that its model calls and events are traced there."""
        return RunnableLambda(self._retrieve, self._aretrieve, name=type(self.rag).__name__)

    def _retrieve(self, search: dict[str, Any], trace: Trace | None = None) -> Selection:
        rag, trace = self._pipeline(search["k"]), trace or Trace(search["query"], observer=observe)
        return rag.retrieve(search["query"], filter=search["filter"], form=Form(shown), trace=trace)

    async def _aretrieve(self, search: dict[str, Any]) -> Selection:
        async with observing() as observer:
            rag, trace = self._pipeline(search["k"]), Trace(search["query"], observer=observer)
            asked = {"filter": search["filter"], "form": Form(shown), "trace": trace}
            return await rag.aretrieve(search["query"], **asked)
