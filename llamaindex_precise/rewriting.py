"""A retriever that also searches for the question in other words."""

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.settings import Settings

from llamaindex_precise.convert import from_candidate, own_texts
from llamaindex_precise.source import source_of
from llamaindex_precise.words import own_words
from precise_rag._pickling import Portable
from precise_rag.rewriting import QueryRewriter, merge_searches
from precise_rag.types import check_query


class RewritingRetriever(Portable, BaseRetriever):
    """Retriever that searches for a question and for the question rewritten by a model (ChunkRAG, section 3).

    What both searches find is merged by reciprocal rank fusion, see `merge_searches`. A rewrite that fails
    changes nothing.

    retriever: any LlamaIndex retriever.
    llm: anything that `load_llm` takes; default: `Settings.llm`.
    """

    @own_words
    def __init__(
        self, retriever: BaseRetriever, llm: Any = None, callback_manager: CallbackManager | None = None
    ) -> None:
        super().__init__(callback_manager or Settings.callback_manager)
        source_of(retriever)
        self.retriever = retriever
        self._rewriter = QueryRewriter(Settings.llm if llm is None else llm)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        queries = self._rewriter.queries(check_query(query_bundle.query_str))
        return _merged([self.retriever.retrieve(one) for one in _bundles(query_bundle, queries)])

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        queries = await self._rewriter.aqueries(check_query(query_bundle.query_str))
        return _merged([await self.retriever.aretrieve(one) for one in _bundles(query_bundle, queries)])


def _bundles(given: QueryBundle, queries: tuple[str, ...]) -> list[QueryBundle]:
    """The question as it was given, and what else is searched for."""
    return [given, *map(QueryBundle, queries[1:])]


def _merged(searches: list[list[NodeWithScore]]) -> list[NodeWithScore]:
    if len(searches) == 1:
        return searches[0]
    merged = merge_searches(map(own_texts, searches))
    return [NodeWithScore(node=from_candidate(one).node, score=one.score) for one in merged]
