"""What a pipeline searches in LlamaIndex: a retriever with its postprocessors, or a vector store."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, QueryBundle, QueryType
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilter, MetadataFilters

from llamaindex_precise.convert import to_candidates
from llamaindex_precise.embeddings import PreciseEmbedding
from precise_rag.checks import check_methods, check_number, items_of, shown
from precise_rag.encoded import encode_queries
from precise_rag.encoders import load_encoder
from precise_rag.errors import InputError
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, FloatArray, check_query


class OverPipeline:
    """A component over a pipeline, `rag`, whose settings are given when it is made."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__ and name in vars(getattr(self, "rag", self)):
            raise InputError(f"{name} is a setting of the pipeline; pass it when you make the component")
        super().__setattr__(name, value)


class _Source:
    node_postprocessors: Sequence[BaseNodePostprocessor] = ()

    def _retriever(self, filter: Any, top_k: int) -> BaseRetriever:
        raise NotImplementedError

    def search(
        self, query: QueryType, top_k: int = 0, /, *, filter: Any = None, vector: FloatArray | None = None
    ) -> list[Candidate]:
        """Return what is found as candidates, best first. Raises InputError for a filter that does not fit.

        top_k: how many a store returns; 0 for its `fetch_k`. A retriever decides by itself.
        vector: searched for in place of the query's own.
        """
        bundle = as_bundle(query, vector)
        nodes = self._retriever(filter, top_k).retrieve(bundle)
        for postprocessor in self.node_postprocessors:
            nodes = postprocessor.postprocess_nodes(nodes, query_bundle=bundle)
        return to_candidates(nodes, mode=MetadataMode.NONE)

    async def asearch(
        self, query: QueryType, top_k: int = 0, /, *, filter: Any = None, vector: FloatArray | None = None
    ) -> list[Candidate]:
        """Run `search` without blocking the event loop."""
        bundle = as_bundle(query, vector)
        nodes = await self._retriever(filter, top_k).aretrieve(bundle)
        for postprocessor in self.node_postprocessors:
            nodes = await postprocessor.apostprocess_nodes(nodes, query_bundle=bundle)
        return to_candidates(nodes, mode=MetadataMode.NONE)


class RetrieverSource(_Source):
    """Any LlamaIndex retriever with its postprocessors as what a pipeline searches."""

    def __init__(
        self, retriever: BaseRetriever, node_postprocessors: Sequence[BaseNodePostprocessor] = ()
    ) -> None:
        advice = "pass a LlamaIndex retriever, such as index.as_retriever()"
        check_methods("retriever", retriever, ("retrieve", "aretrieve"), advice)
        self.retriever = retriever
        self.node_postprocessors = list(items_of("node_postprocessors", node_postprocessors, object))
        for one in self.node_postprocessors:
            advice = "pass LlamaIndex postprocessors"
            check_methods("node_postprocessors", one, ("postprocess_nodes",), advice)

    def _retriever(self, filter: Any, top_k: int) -> BaseRetriever:
        if filter is not None:
            raise InputError("a filter is for a pipeline over an index; set it on the retriever instead")
        return self.retriever


class StoreSource(_Source):
    """A vector store of chunks as what a pipeline searches; see `PreciseRetriever.from_store`."""

    def __init__(
        self, store: BasePydanticVectorStore | BaseIndex[Any], embed_model: BaseEmbedding | None, fetch_k: int
    ) -> None:
        if not isinstance(store, BasePydanticVectorStore | BaseIndex):
            raise InputError(f"store must be a vector store or an index of LlamaIndex, got {shown(store)}")
        check_number("fetch_k", fetch_k, least=1, whole=True)
        if not isinstance(store, BaseIndex):
            if not store.stores_text:
                kind = type(store).__name__
                raise InputError(f"{kind} keeps vectors without their text; pass the index over it")
            embedding = embed_model or Settings._embed_model or PreciseEmbedding()
            store = VectorStoreIndex.from_vector_store(store, embed_model=embedding)
        elif embed_model is not None:
            raise InputError("an index has its own embed_model; pass its vector store to choose another")
        self.store, self.fetch_k = store, fetch_k
        model = getattr(store, "_embed_model", None)
        self.encoder = None if model is None else load_encoder(model)  # of a query that HyDE wrote

    def _retriever(self, filter: Any, top_k: int) -> BaseRetriever:
        filters = MetadataFilters(filters=[filter]) if isinstance(filter, MetadataFilter) else filter
        if not isinstance(filters, MetadataFilters | None):
            raise InputError(f"filters of a store must be MetadataFilters, got {shown(filter)}")
        return self.store.as_retriever(similarity_top_k=top_k or self.fetch_k, filters=filters)


def query_vector(bundle: QueryBundle, encoder: Encoder | None) -> FloatArray | None:
    """Return the vector that a query brings to search for, as HyDE's does; None if it brings none."""
    if bundle.embedding is not None:
        return np.asarray(bundle.embedding, dtype=np.float32)
    if bundle.custom_embedding_strs and encoder is not None:
        return np.asarray(encode_queries(encoder, bundle.custom_embedding_strs).mean(axis=0))
    return None


def as_bundle(query: QueryType, vector: FloatArray | None = None) -> QueryBundle:
    """Return a query as a bundle. Raises InputError if it is blank or no text."""
    if not isinstance(query, QueryBundle):
        query = QueryBundle(check_query(query), embedding=None if vector is None else vector.tolist())
    check_query(query.query_str)
    return query
