"""Retrievers over the core's indexes, and over the whole retrieval path."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore
from pydantic import Field, SkipValidation

from langchain_precise.convert import from_candidate, from_excerpts, to_core_documents
from langchain_precise.events import observe, observing
from langchain_precise.stores import StoreSource
from langchain_precise.words import OwnWords, own_words
from precise_rag._arguments import check_names, check_search_options
from precise_rag.checks import check_methods
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import EmptyIndexError, InputError
from precise_rag.excerpts import excerpts_of, no_piece_tokens
from precise_rag.index import (
    DatabaseIndex,
    DocumentIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
)
from precise_rag.pipeline import PreciseRAG, check_pipeline
from precise_rag.protocols import Index
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Selection, check_query


class _Search(NamedTuple):
    query: str
    k: int | None
    filter: Any
    trace: Trace | None = None


class IndexRetriever(OwnWords, BaseRetriever):
    """Base of the retrievers: searches a core index and returns new documents.

    Each document has the metadata of its source and, in `metadata["precise"]`, the facts: its place
    there, its score and more, see `read_facts`.

    index: a core index.
    k: how many documents to return; default: 10.
    search_kwargs: further options of the index's `search`, such as `{"returns": "passage"}` or
        `{"filter": {"tenant": "acme", "year": {"$gte": 2020}}}`; see `as_filter`. A "k" there is `k`.
    Both options can be set for one call: `invoke(query, k=3, returns="passage")`.
    """

    index: SkipValidation[Index]
    k: int = Field(default=10, ge=1)
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    index_class: ClassVar[type[DocumentIndex]]

    def __init__(self, **fields: Any) -> None:
        super().__init__(**_with_k(fields))
        check_methods("index", self.index, ("search",), "pass an index of precise_rag")
        self._check(self.search_kwargs)

    @classmethod
    @own_words
    def from_documents(
        cls,
        documents: Iterable[Document],
        embeddings: Any = DEFAULT_ENCODER,
        *,
        k: int | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Self:
        """Return a retriever over a new index of `documents`.

        embeddings: LangChain embeddings, a core encoder, or the name or path of one; default: the offline
            encoder.
        k, search_kwargs: as for the constructor.
        settings: of the index.
        """
        index = cls.index_class.build(
            to_core_documents(documents), load_encoder(embeddings, argument="embeddings"), **settings
        )
        return cls.from_index(index, k=k, search_kwargs=search_kwargs)

    @classmethod
    def from_index(cls, index: Index, **fields: Any) -> Self:
        """Return a retriever over an index that was built by the core or loaded from disk."""
        return cls(index=index, **fields)

    def add_documents(
        self, documents: Iterable[Document], embeddings: Sequence[Sequence[float]] | None = None
    ) -> list[str]:
        """Index more documents and return their ids; one with a known id replaces the old one.

        embeddings: those of the documents, by the index's model, for an index in a database: all sentences
            of a document share it, and nothing is embedded again. Default: sentences are embedded.
        """
        return _add(self.index, documents, embeddings)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove documents by id. Raises InputError, changing nothing, if an id is unknown."""
        self.index.delete(ids)

    def search(self, query: str, k: int | None = None, **search_kwargs: Any) -> list[Candidate]:
        """Return the core's candidates for a query, best first; none if nothing is indexed."""
        options = self.search_kwargs | self._check(search_kwargs)
        try:
            return self.index.search(check_query(query), self.k if k is None else k, **options)
        except EmptyIndexError:
            return []

    async def asearch(self, query: str, k: int | None = None, **search_kwargs: Any) -> list[Candidate]:
        """Run `search` without blocking the event loop; awaits the embeddings' own asynchronous method."""
        asearch = getattr(self.index, "asearch", None)
        if asearch is None:
            return await run_in_executor(None, partial(self.search, query, k, **search_kwargs))
        options = self.search_kwargs | self._check(search_kwargs)
        try:
            candidates: list[Candidate] = await asearch(
                check_query(query), self.k if k is None else k, **options
            )
        except EmptyIndexError:
            return []
        return candidates

    def _check(self, search_kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return options of a search. Raises InputError for one that the index's search does not take."""
        check_search_options(f"the search of {type(self).__name__}", self.index.search, search_kwargs)
        return search_kwargs

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        **search_kwargs: Any,
    ) -> list[Document]:
        return [from_candidate(candidate) for candidate in self.search(query, k, **search_kwargs)]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        **search_kwargs: Any,
    ) -> list[Document]:
        return [from_candidate(candidate) for candidate in await self.asearch(query, k, **search_kwargs)]


class SentenceContextRetriever(IndexRetriever):
    """Retriever of sentences by meaning, each scored together with its passage (ParetoRAG)."""

    index_class = SentenceContextIndex


class WordSentenceRetriever(IndexRetriever):
    """Retriever of sentences that share words with the query, ranked by meaning (recursive retrieval)."""

    index_class = WordSentenceIndex


class HybridRetriever(IndexRetriever):
    """Retriever of sentences by words and by meaning at once, each in its context."""

    index_class = HybridIndex

    @classmethod
    @own_words
    def from_database(
        cls,
        location: str,
        embeddings: Any = DEFAULT_ENCODER,
        *,
        k: int | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Self:
        """Return a retriever over a collection in a database, which need not exist yet.

        location: "postgresql://…".
        embeddings: as for `from_documents`; the one that the collection was made with.
        settings: of `DatabaseIndex`, such as `filter_statistics="matching"`.
        """
        index = DatabaseIndex(location, load_encoder(embeddings, argument="embeddings"), **settings)
        return cls.from_index(index, k=k, search_kwargs=search_kwargs)


class PreciseRetriever(OwnWords, BaseRetriever):
    """Retriever that runs the whole path: search, reranking, filters and selection.

    It returns excerpts: verbatim parts of the documents in the order of the text, the document with the best
    one first, see `excerpts_of`. The score of an excerpt is that of its best sentence; `read_facts` lists
    its sentences. `DOCUMENT_PROMPT` writes an excerpt with what stands above it.

    rag: the pipeline, of which the retrieval part is used. With `order="score"` it returns single sentences,
        best first.
    k: return exactly the best `k` sentences, best first, if there are as many; default: excerpts of what the
        selection keeps.
    search_kwargs: a "filter" for all calls, such as `{"filter": {"year": 2020}}`, and a "k", which is the
        field `k`.
    Both k and filter can be set for one call: `invoke(query, k=3, filter={"year": 2020})`.
    """

    rag: SkipValidation[PreciseRAG]
    k: int | None = Field(default=None, ge=1)
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    def __init__(self, **fields: Any) -> None:
        super().__init__(**_with_k(fields))
        check_pipeline(self.rag)
        check_names("search_kwargs", self.search_kwargs, ("filter",), {"filter": "filters where"})

    @classmethod
    @own_words
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

        embeddings: LangChain embeddings, a core encoder, or the name or path of one; default: the offline
            encoder.
        k, search_kwargs: as for the constructor.
        options: of `PreciseRAG.from_documents`, such as `preset="sage"`.
        """
        encoder = load_encoder(embeddings, argument="embeddings")
        rag = PreciseRAG.from_documents(to_core_documents(documents), encoder=encoder, **options)
        return cls(rag=rag, k=k, search_kwargs=search_kwargs)

    @classmethod
    @own_words
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
    @own_words
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
        fetch_k: chunks to fetch from the store for each question.
        filter: in the store's own form; that of a call goes before it.
        search_kwargs: other options of the store's search.
        options: of `PreciseRAG`.
        """
        if "k" in (search_kwargs or {}):
            raise InputError("the k of a store's search is fetch_k= here; k= is how many pieces to return")
        return cls(rag=PreciseRAG(StoreSource(store, fetch_k, search_kwargs or {}, filter), **options), k=k)

    @classmethod
    @own_words
    def from_rag(
        cls, rag: PreciseRAG, *, k: int | None = None, search_kwargs: Mapping[str, Any] | None = None
    ) -> Self:
        """Return a retriever by a pipeline."""
        return cls(rag=rag, k=k, search_kwargs=search_kwargs)

    def add_documents(
        self, documents: Iterable[Document], embeddings: Sequence[Sequence[float]] | None = None
    ) -> list[str]:
        """Index more documents and return their ids, as `IndexRetriever.add_documents` does."""
        return _add(self._index, documents, embeddings)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove documents by id. Raises InputError, changing nothing, if an id is unknown."""
        self._index.delete(ids)

    def select(self, query: str, *, k: int | None = None, filter: Any = None) -> Selection:
        """Return the decision on each candidate: kept or dropped, with its score and the reason."""
        return self._retrieve(_Search(query, k, filter, Trace(check_query(query))))

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,
    ) -> list[Document]:
        search = _Search(check_query(query), k, filter)
        selection = self._path.invoke(search, {"callbacks": run_manager.get_child()})
        return self._documents(selection, search)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Any = None,
    ) -> list[Document]:
        search = _Search(check_query(query), k, filter)
        selection = await self._path.ainvoke(search, {"callbacks": run_manager.get_child()})
        return self._documents(selection, search)

    def _documents(self, selection: Selection, search: _Search) -> list[Document]:
        """Return what is sent of a selection: excerpts, or the best `k` by themselves."""
        has_k = self.k is not None or search.k is not None
        return from_excerpts(excerpts_of(selection, "score" if has_k else self.rag.order))

    @property
    def _index(self) -> Index:
        if not isinstance(self.rag.index, Index):
            raise InputError("this pipeline searches no index of ours; change the collection where it is")
        return self.rag.index

    @property
    def _path(self) -> Runnable[_Search, Selection]:
        """The path as a child run, so that its model calls and events are traced there."""
        return RunnableLambda(self._retrieve, self._aretrieve, name=type(self.rag).__name__)

    def _filter(self, search: _Search) -> Any:
        return self.search_kwargs.get("filter") if search.filter is None else search.filter

    def _retrieve(self, search: _Search) -> Selection:
        rag = self.rag.with_k(self.k if search.k is None else search.k)
        try:
            return rag.retrieve(
                search.query,
                filter=self._filter(search),
                trace=search.trace or Trace(search.query, observer=observe),
                piece_tokens=no_piece_tokens,
            )
        except EmptyIndexError:
            return Selection()

    async def _aretrieve(self, search: _Search) -> Selection:
        rag = self.rag.with_k(self.k if search.k is None else search.k)
        async with observing() as observer:
            trace = Trace(search.query, observer=observer)
            try:
                return await rag.aretrieve(
                    search.query, filter=self._filter(search), trace=trace, piece_tokens=no_piece_tokens
                )
            except EmptyIndexError:
                return Selection()


def _with_k(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are given; a `k` in `search_kwargs`, as for a vector store, becomes the field.

    Raises InputError if `k` is given in both places.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    options = dict(given.get("search_kwargs", {}))
    if "k" in options and "k" in given:
        raise InputError("k is given twice: as k= and in search_kwargs; leave one out")
    if "k" in options:
        given["k"] = options.pop("k")
    return {**given, "search_kwargs": options}


def _add(
    index: Index, documents: Iterable[Document], embeddings: Sequence[Sequence[float]] | None
) -> list[str]:
    added = to_core_documents(documents)
    ids = [document.id for document in added]
    if embeddings is None:
        index.add(added)
        return ids
    if not isinstance(index, DatabaseIndex):
        raise InputError("embeddings are for an index in a database; leave them out")
    if len(embeddings) != len(ids):
        raise InputError(
            f"there are {len(ids)} documents and {len(embeddings)} embeddings; give one for each"
        )
    vectors = zip(ids, (np.asarray(one, dtype=np.float32) for one in embeddings), strict=True)
    index.add(added, vectors=dict(vectors))
    return ids
