"""Retrievers over the core's indexes, and over the whole retrieval path."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    MetadataFilters,
)

from llamaindex_precise.convert import from_candidate, from_excerpts, piece_tokens, to_core_documents
from llamaindex_precise.embeddings import EmbedModel, resolve_encoder
from llamaindex_precise.events import observing
from llamaindex_precise.filters import MetadataFilterInput, to_core_filter
from llamaindex_precise.stores import StoreSource
from llamaindex_precise.words import own_words
from precise_rag._arguments import check_search_options
from precise_rag.checks import check_methods
from precise_rag.encoded import encode_queries
from precise_rag.errors import EmptyIndexError, InputError
from precise_rag.excerpts import excerpts_of
from precise_rag.index import (
    DatabaseIndex,
    DocumentIndex,
    HybridIndex,
    SentenceContextIndex,
    WordSentenceIndex,
)
from precise_rag.pipeline import PreciseRAG, check_pipeline
from precise_rag.protocols import Encoder, Index
from precise_rag.trace import Trace
from precise_rag.types import Candidate, FloatArray, Selection, check_query

dispatcher = get_dispatcher(__name__)


class IndexRetriever(BaseRetriever):
    """Base of the retrievers: searches a core index and returns new nodes.

    Each node points to its document (SOURCE), has exact offsets into it, its metadata and excluded
    keys, and the facts in `metadata["precise"]`, see `read_facts`.

    index: a core index.
    similarity_top_k: how many nodes to return.
    search_kwargs: further options of the index's `search`, such as `{"returns": "passage"}`.
    filters: what the documents of all nodes must meet, see `to_core_filter`; can be set between calls.
    """

    index_class: ClassVar[type[DocumentIndex]]

    @own_words
    def __init__(
        self,
        index: DocumentIndex | DatabaseIndex,
        similarity_top_k: int = 10,
        search_kwargs: Mapping[str, Any] | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
        filters: MetadataFilterInput | None = None,
    ) -> None:
        super().__init__(callback_manager, object_map, objects, verbose)
        self.index = index
        self.similarity_top_k = similarity_top_k
        self.search_kwargs = dict(search_kwargs or {})
        check_methods("index", index, ("search",), "pass an index of precise_rag")
        check_search_options(f"the search of {type(self).__name__}", index.search, self.search_kwargs)
        self.filters = filters

    @classmethod
    @own_words
    def from_documents(
        cls,
        documents: Sequence[BaseNode],
        embed_model: EmbedModel = None,
        similarity_top_k: int = 10,
        search_kwargs: Mapping[str, Any] | None = None,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
        filters: MetadataFilterInput | None = None,
        **settings: Any,
    ) -> Self:
        """Return a retriever over a new index of `documents`, which may also be nodes.

        embed_model: a LlamaIndex embedding, a core encoder, or the name or path of one; default
        `Settings.embed_model` if the application has set one, otherwise the offline encoder.
        settings: of the index.
        """
        index = cls.index_class.build(
            to_core_documents(documents),
            resolve_encoder(embed_model),
            show_progress=show_progress,
            **settings,
        )
        return cls(index, similarity_top_k, search_kwargs, callback_manager, filters=filters)

    @classmethod
    def from_index(
        cls, index: DocumentIndex | DatabaseIndex, similarity_top_k: int = 10, **kwargs: Any
    ) -> Self:
        """Return a retriever over an index that was built by the core or loaded from disk."""
        return cls(index, similarity_top_k, **kwargs)

    def add_documents(self, documents: Sequence[BaseNode]) -> None:
        """Index more documents; one with a known id replaces the old one.

        In a database, a node that comes with an embedding is not embedded again: its sentences share it.
        """
        _add(self.index, documents)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove documents by id. Raises InputError, changing nothing, if an id is unknown."""
        self.index.delete(ids)

    def search(self, query: QueryBundle | str, top_k: int | None = None) -> list[Candidate]:
        """Return the core's candidates for a query, best first; none if nothing is indexed.

        query: if the bundle has an embedding, or other strings to embed (HyDE), those are searched for.
        """
        try:
            return self.index.search(**self._arguments(query, top_k))
        except EmptyIndexError:
            return []

    async def asearch(self, query: QueryBundle | str, top_k: int | None = None) -> list[Candidate]:
        """Run `search` without blocking the event loop; awaits the embedding's own asynchronous method."""
        asearch = getattr(self.index, "asearch", None)
        if asearch is None:
            return await asyncio.to_thread(self.search, query, top_k)
        try:
            candidates: list[Candidate] = await asearch(**self._arguments(query, top_k))
        except EmptyIndexError:
            return []
        return candidates

    def returning(self, returns: str, top_k: int) -> Self:
        """Return this retriever with other `returns` and another number of nodes; the rest is shared."""
        other = object.__new__(type(self))
        other.__dict__ |= vars(self)
        other.similarity_top_k, other.search_kwargs = top_k, {**self.search_kwargs, "returns": returns}
        return other

    def _arguments(self, query: QueryBundle | str, top_k: int | None) -> dict[str, Any]:
        bundle = _bundle(query)
        options = dict(self.search_kwargs)
        if self.filters is not None:
            options["filter"] = to_core_filter(self.filters)
        top_k = self.similarity_top_k if top_k is None else top_k
        return {
            **options,
            "query": bundle.query_str,
            "top_k": top_k,
            "vector": query_vector(bundle, self.index.encoder),
        }

    def retrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the nodes found for a query. Raises InputError for one that is blank or no text."""
        return super().retrieve(_bundle(str_or_query_bundle))

    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Run `retrieve` without blocking the event loop."""
        return await super().aretrieve(_bundle(str_or_query_bundle))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [from_candidate(candidate) for candidate in self.search(query_bundle)]

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [from_candidate(candidate) for candidate in await self.asearch(query_bundle)]


def query_vector(bundle: QueryBundle, encoder: Encoder | None) -> FloatArray | None:
    """Return the vector that a query brings to search for, as HyDE's does; None if it brings none."""
    if bundle.embedding is not None:
        return np.asarray(bundle.embedding, dtype=np.float32)
    if bundle.custom_embedding_strs and encoder is not None:
        mean: FloatArray = encode_queries(encoder, bundle.custom_embedding_strs).mean(axis=0)
        return mean
    return None


def _add(index: Index | DocumentIndex | DatabaseIndex, nodes: Sequence[BaseNode]) -> None:
    if isinstance(index, DatabaseIndex):
        embedded = {node.node_id: node.embedding for node in nodes if node.embedding is not None}
        vectors = {name: np.asarray(vector, dtype=np.float32) for name, vector in embedded.items()}
        index.add(to_core_documents(nodes), vectors=vectors)
    else:
        index.add(to_core_documents(nodes))


def _bundle(query: QueryBundle | str) -> QueryBundle:
    """Return the query as a bundle. Its text may be blank if it brings what to search for."""
    bundle = query if isinstance(query, QueryBundle) else QueryBundle(check_query(query))
    if bundle.embedding is None and not bundle.custom_embedding_strs:
        check_query(bundle.query_str)
    return bundle


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
        embed_model: EmbedModel = None,
        similarity_top_k: int = 10,
        search_kwargs: Mapping[str, Any] | None = None,
        callback_manager: CallbackManager | None = None,
        filters: MetadataFilterInput | None = None,
        **settings: Any,
    ) -> Self:
        """Return a retriever over a collection in a database, which need not exist yet.

        location: "postgresql://…".
        embed_model: as for `from_documents`; the one that the collection was made with.
        settings: of `DatabaseIndex`, such as `filter_statistics="matching"`.
        """
        index = DatabaseIndex(location, resolve_encoder(embed_model), **settings)
        return cls(index, similarity_top_k, search_kwargs, callback_manager, filters=filters)


class PreciseRetriever(BaseRetriever):
    """Retriever that runs the whole path: search, reranking, filters and selection.

    It returns excerpts: verbatim parts of the documents in the order of the text, the document with the best
    one first, see `excerpts_of`. The score of an excerpt is that of its best sentence; `read_facts` lists
    its sentences.

    rag: the pipeline, of which the retrieval part is used. With `order="score"` it returns single sentences,
        best first.
    similarity_top_k: return exactly the best sentences, best first, as many as this if there are; default:
        excerpts of what the selection keeps.
    filters: what the documents of all nodes must meet, see `to_core_filter`; can be set between calls.
    """

    @own_words
    def __init__(
        self,
        rag: PreciseRAG,
        similarity_top_k: int | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
        *,
        filters: MetadataFilterInput | None = None,
    ) -> None:
        super().__init__(callback_manager, object_map, objects, verbose)
        self.rag = check_pipeline(rag)
        self.similarity_top_k = similarity_top_k
        self.filters = filters

    @classmethod
    @own_words
    def from_documents(
        cls,
        documents: Sequence[BaseNode],
        embed_model: EmbedModel = None,
        similarity_top_k: int | None = None,
        *,
        callback_manager: CallbackManager | None = None,
        filters: MetadataFilterInput | None = None,
        **options: Any,
    ) -> Self:
        """Return a retriever over a new index of `documents`, which may also be nodes.

        embed_model: as for the other retrievers.
        options: of `PreciseRAG.from_documents`, such as `preset="sage"`.
        """
        rag = PreciseRAG.from_documents(
            to_core_documents(documents), encoder=resolve_encoder(embed_model), **options
        )
        return cls(rag, similarity_top_k, callback_manager, filters=filters)

    @classmethod
    @own_words
    def from_index(
        cls,
        index: DocumentIndex | DatabaseIndex,
        similarity_top_k: int | None = None,
        *,
        callback_manager: CallbackManager | None = None,
        filters: MetadataFilterInput | None = None,
        **options: Any,
    ) -> Self:
        """Return a retriever over an existing index; `options` go to `PreciseRAG`."""
        return cls(PreciseRAG(index, **options), similarity_top_k, callback_manager, filters=filters)

    @classmethod
    @own_words
    def from_store(
        cls,
        store: BasePydanticVectorStore | BaseIndex[Any],
        embed_model: BaseEmbedding | None = None,
        similarity_top_k: int | None = None,
        *,
        fetch_k: int = 20,
        filters: MetadataFilters | MetadataFilter | None = None,
        **options: Any,
    ) -> Self:
        """Return a retriever over the chunks of a vector store that you have; nothing is indexed again.

        The sentences of the chunks that the store finds are reranked and grow to evidence.

        store: a vector store, or an index over one.
        embed_model: the embedding that a vector store was filled with; default: `Settings.embed_model` if
            the application has set one, otherwise the offline encoder. An index has its own.
        fetch_k: chunks to fetch from the store for each question.
        filters: the store's own.
        options: of `PreciseRAG`.
        """
        return cls(
            PreciseRAG(StoreSource(store, embed_model, fetch_k), **options), similarity_top_k, filters=filters
        )

    @classmethod
    @own_words
    def from_rag(cls, rag: PreciseRAG, similarity_top_k: int | None = None) -> Self:
        """Return a retriever by a pipeline."""
        return cls(rag, similarity_top_k)

    def add_documents(self, documents: Sequence[BaseNode]) -> None:
        """Index more documents, as `IndexRetriever.add_documents` does."""
        _add(self._index, documents)

    def delete(self, ids: Iterable[str]) -> None:
        """Remove documents by id. Raises InputError, changing nothing, if an id is unknown."""
        self._index.delete(ids)

    def select(self, query: QueryBundle | str) -> Selection:
        """Return the decision on each candidate: kept or dropped, with its score and the reason.

        query: as for `IndexRetriever.search`.
        """
        try:
            return self.rag.with_k(self.similarity_top_k).retrieve(**self._arguments(query))
        except EmptyIndexError:
            return Selection()

    async def aselect(self, query: QueryBundle | str) -> Selection:
        """Run `select` without blocking the event loop."""
        try:
            return await self.rag.with_k(self.similarity_top_k).aretrieve(**self._arguments(query))
        except EmptyIndexError:
            return Selection()

    def retrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the selected nodes. Raises InputError for a query that is blank or no text."""
        return super().retrieve(_bundle(str_or_query_bundle))

    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Run `retrieve` without blocking the event loop."""
        return await super().aretrieve(_bundle(str_or_query_bundle))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(self.select(query_bundle))

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(await self.aselect(query_bundle))

    def _nodes(self, selection: Selection) -> list[NodeWithScore]:
        """Return what is sent of a selection: excerpts, or the best `similarity_top_k` by themselves."""
        order = self.rag.order if self.similarity_top_k is None else "score"
        return from_excerpts(excerpts_of(selection, order, piece_tokens))

    @property
    def _index(self) -> Index:
        if not isinstance(self.rag.index, Index):
            raise InputError("this pipeline searches no index of ours; change the collection where it is")
        return self.rag.index

    def _arguments(self, query: QueryBundle | str) -> dict[str, Any]:
        bundle = _bundle(query)
        text = check_query(bundle.query_str)
        wanted: Any = self.filters
        if wanted is not None and not isinstance(self.rag.index, StoreSource):
            wanted = to_core_filter(wanted)
        return {
            "query": text,
            "filter": wanted,
            "vector": query_vector(bundle, getattr(self.rag.index, "encoder", None)),
            "trace": Trace(text, observer=observing(dispatcher)),
            "piece_tokens": piece_tokens,
        }
