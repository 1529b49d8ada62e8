"""The retriever over the whole retrieval path."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from inspect import unwrap
from typing import Any, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilter, MetadataFilters

from llamaindex_precise.convert import from_selection, piece_tokens, shown, to_core_documents
from llamaindex_precise.embeddings import EmbedModel, resolve_encoder
from llamaindex_precise.events import dispatcher, observe
from llamaindex_precise.filters import MetadataFilterInput, filter_for, to_core_filter
from llamaindex_precise.sources import OverPipeline, StoreSource, as_bundle, query_vector
from precise_rag.checks import check_number
from precise_rag.excerpts import Form, excerpts_of
from precise_rag.pipeline import PreciseRAG, check_pipeline
from precise_rag.protocols import Index
from precise_rag.trace import Trace
from precise_rag.types import Selection


class PreciseRetriever(OverPipeline, BaseRetriever):
    """Retriever that runs the whole path: search, reranking, filters and selection.

    It returns excerpts: verbatim parts of the documents in the order of the text, the document with the best
    one first, see `excerpts_of`. Each excerpt is a new node that points to its document (SOURCE), with exact
    offsets, the document's metadata and excluded keys, and the facts in `metadata["precise"]`, see
    `read_facts`. Its score is that of its best sentence.

    rag: the pipeline, of which the retrieval part is used. With `order="score"` it returns single sentences,
        best first.
    similarity_top_k: return exactly the best `similarity_top_k` sentences, best first in any `order`, if
        there are as many; default: excerpts of what the selection keeps.
    filters: what the documents of all nodes must meet, see `to_core_filter`; can be set between calls.
    options: the other arguments of `BaseRetriever`.
    """

    def __init__(
        self,
        rag: PreciseRAG,
        similarity_top_k: int | None = None,
        callback_manager: CallbackManager | None = None,
        *,
        filters: MetadataFilterInput | None = None,
        **options: Any,
    ) -> None:
        super().__init__(callback_manager, **options)
        check_number("similarity_top_k", similarity_top_k, least=1, whole=True, none="excerpts")
        self._rag = check_pipeline(rag)
        self.similarity_top_k = similarity_top_k
        self.filters = to_core_filter(filters) if isinstance(filters, Mapping) else deepcopy(filters)

    @property
    def rag(self) -> PreciseRAG:
        """The pipeline, which keeps to `filters`."""
        return self._rag.with_filter(filter_for(self._rag.index, self.filters))

    @classmethod
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

        embed_model: a LlamaIndex embedding, a core encoder, or the name or path of one; default
            `Settings.embed_model` if the application has set one, otherwise the offline encoder.
        options: of `PreciseRAG.from_documents`, such as `preset="sage"`.
        """
        options = {"encoder": resolve_encoder(embed_model)} | options
        rag = PreciseRAG.from_documents(to_core_documents(documents), **options)
        return cls(rag, similarity_top_k, callback_manager, filters=filters)

    @classmethod
    def from_index(
        cls,
        index: Index,
        similarity_top_k: int | None = None,
        *,
        callback_manager: CallbackManager | None = None,
        filters: MetadataFilterInput | None = None,
        **options: Any,
    ) -> Self:
        """Return a retriever over an existing index; `options` go to `PreciseRAG`."""
        return cls(PreciseRAG(index, **options), similarity_top_k, callback_manager, filters=filters)

    @classmethod
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
        fetch_k: chunks to fetch from the store for each question; more are fetched where a few documents or
            texts take all places.
        filters: the store's own.
        options: of `PreciseRAG`.
        """
        source = StoreSource(store, embed_model, fetch_k)
        return cls(PreciseRAG(source, **options), similarity_top_k, filters=filters)

    def add_documents(self, documents: Sequence[BaseNode]) -> None:
        """Index more documents; one with a known id replaces the old one."""
        self._rag.own_index.add(to_core_documents(documents))

    def delete(self, ids: Iterable[str]) -> None:
        """Remove documents by id. Raises InputError, changing nothing, if an id is unknown."""
        self._rag.own_index.delete(ids)

    def select(self, query: QueryType) -> Selection:
        """Return the decision on each candidate: kept or dropped, with its score and the reason.

        query: if the bundle has an embedding, or other strings to embed (HyDE), those are searched for.
        """
        return self.rag.with_k(self.similarity_top_k).retrieve(**self._arguments(query))

    async def aselect(self, query: QueryType) -> Selection:
        """Run `select` without blocking the event loop."""
        return await self.rag.with_k(self.similarity_top_k).aretrieve(**self._arguments(query))

    def retrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the selected nodes, in one span. Raises InputError for a query that is blank or no text."""
        return list(unwrap(super().retrieve)(as_bundle(str_or_query_bundle)))

    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Run `retrieve` without blocking the event loop."""
        return list(await unwrap(super().aretrieve)(as_bundle(str_or_query_bundle)))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(self.select(query_bundle))

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(await self.aselect(query_bundle))

    def _nodes(self, selection: Selection) -> list[NodeWithScore]:
        order = self.rag.with_k(self.similarity_top_k).order
        return from_selection(Selection.keep_all(excerpts_of(selection, order, piece_tokens)))

    def _arguments(self, query: QueryType) -> dict[str, Any]:
        bundle = as_bundle(query)
        return {
            "query": bundle.query_str,
            "vector": query_vector(bundle, getattr(self.rag.index, "encoder", None)),
            "trace": Trace(bundle.query_str, observer=observe),
            "form": Form(shown, piece_tokens),
        }
