"""A LlamaIndex retriever, with its postprocessors, as what a pipeline searches."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_precise.convert import own_texts, to_candidates
from llamaindex_precise.retrievers import IndexRetriever
from precise_rag._arguments import check_items
from precise_rag.checks import check_methods
from precise_rag.errors import InputError
from precise_rag.protocols import Neighbours
from precise_rag.types import Candidate, FloatArray, Stretch

_POSTPROCESSORS = "LlamaIndex postprocessors"


class RetrieverSource:
    """What a retriever finds, as candidates; it decides how many.

    retriever: any LlamaIndex retriever.
    node_postprocessors: applied to what it finds, in order.
    """

    def __init__(
        self, retriever: BaseRetriever, node_postprocessors: Sequence[BaseNodePostprocessor] = ()
    ) -> None:
        self.retriever = retriever
        self.node_postprocessors = list(node_postprocessors)

    @property
    def encoder(self) -> Any:
        """The encoder of the retriever's index, if it is one of ours."""
        return getattr(getattr(self.retriever, "index", None), "encoder", None)

    def search(self, query: QueryBundle | str, top_k: int = 0, /, *, filter: Any = None) -> list[Candidate]:
        """Return the retriever's nodes as candidates. Raises InputError for a filter."""
        return own_texts(self.nodes(_bundle(query, filter)))

    async def asearch(
        self, query: QueryBundle | str, top_k: int = 0, /, *, filter: Any = None
    ) -> list[Candidate]:
        """Run `search` without blocking the event loop."""
        return own_texts(await self.anodes(_bundle(query, filter)))

    def nodes(self, bundle: QueryBundle) -> list[NodeWithScore]:
        """Return the retrieved and postprocessed nodes."""
        nodes = self.retriever.retrieve(bundle)
        for postprocessor in self.node_postprocessors:
            nodes = postprocessor.postprocess_nodes(nodes, query_bundle=bundle)
        return nodes

    async def anodes(self, bundle: QueryBundle) -> list[NodeWithScore]:
        """Run `nodes` without blocking the event loop."""
        nodes = await self.retriever.aretrieve(bundle)
        for postprocessor in self.node_postprocessors:
            nodes = await postprocessor.apostprocess_nodes(nodes, query_bundle=bundle)
        return nodes


class SentenceSource(RetrieverSource):
    """One of our retrievers over an index of sentences; the pipeline decides how many it finds.

    Its own `similarity_top_k` and `returns` hold where the sentences are not asked for.
    """

    retriever: IndexRetriever

    def search(
        self,
        query: QueryBundle | str,
        top_k: int = 0,
        /,
        *,
        filter: Any = None,
        vector: FloatArray | None = None,
        returns: str | None = None,
    ) -> list[Candidate]:
        """Return the retriever's nodes as candidates; with returns, `top_k` pieces of that kind.

        vector: searched for in place of the query's own.
        """
        bundle = _bundle(query, filter, vector)
        if returns is None:
            return super().search(bundle, top_k)
        return to_candidates(self.retriever.returning(returns, top_k).retrieve(bundle))

    async def asearch(
        self,
        query: QueryBundle | str,
        top_k: int = 0,
        /,
        *,
        filter: Any = None,
        vector: FloatArray | None = None,
        returns: str | None = None,
    ) -> list[Candidate]:
        """Run `search` without blocking the event loop."""
        bundle = _bundle(query, filter, vector)
        if returns is None:
            return await super().asearch(bundle, top_k)
        return to_candidates(await self.retriever.returning(returns, top_k).aretrieve(bundle))

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the sentences around some of the index."""
        index = self.retriever.index
        return index.neighbours(sentences, reach) if isinstance(index, Neighbours) else []


def source_of(
    retriever: BaseRetriever, node_postprocessors: Sequence[BaseNodePostprocessor] = ()
) -> RetrieverSource:
    """Return a retriever as a source, which knows sentences if nothing stands between it and its index."""
    advice = "pass a LlamaIndex retriever, such as index.as_retriever()"
    check_methods("retriever", retriever, ("retrieve", "aretrieve"), advice)
    node_postprocessors = check_items("node_postprocessors", node_postprocessors, object, _POSTPROCESSORS)
    for postprocessor in node_postprocessors:
        check_methods("node_postprocessors", postprocessor, ("postprocess_nodes",), f"pass {_POSTPROCESSORS}")
    index = getattr(retriever, "index", None)
    knows = isinstance(retriever, IndexRetriever) and isinstance(index, Neighbours)
    return (SentenceSource if knows and not node_postprocessors else RetrieverSource)(
        retriever, node_postprocessors
    )


def _bundle(query: QueryBundle | str, filter: Any, vector: FloatArray | None = None) -> QueryBundle:
    if filter is not None:
        raise InputError("a filter is for a pipeline over an index; set it on the retriever instead")
    if isinstance(query, QueryBundle):
        return query
    return QueryBundle(query, embedding=None if vector is None else vector.tolist())
