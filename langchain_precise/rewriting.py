"""A retriever that also searches for the question in other words."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from pydantic import ConfigDict, PrivateAttr, SkipValidation

from langchain_precise.convert import from_candidate, to_candidates
from langchain_precise.source import source_of
from langchain_precise.words import OwnWords
from precise_rag.rewriting import QueryRewriter, merge_searches
from precise_rag.types import check_query


class RewritingRetriever(OwnWords, BaseRetriever):
    """Retriever that searches for a question and for the question rewritten by a model (ChunkRAG, section 3).

    What both searches find is merged by reciprocal rank fusion, see `merge_searches`. A rewrite that fails
    changes nothing.

    retriever: any Runnable from a question to documents.
    llm: a chat model, or anything else that `load_llm` takes.
    """

    retriever: SkipValidation[Runnable[str, list[Document]]]
    llm: Any

    model_config = ConfigDict(arbitrary_types_allowed=True)

    _rewriter: QueryRewriter = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the retriever and the model now, not at the first question."""
        source_of(self.retriever)
        self._rewriter = QueryRewriter(self.llm)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        queries = self._rewriter.queries(check_query(query))
        searches = [self.retriever.invoke(one, config) for one in queries]
        return _merged(searches)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        queries = await self._rewriter.aqueries(check_query(query))
        searches = [await self.retriever.ainvoke(one, config) for one in queries]
        return _merged(searches)


def _merged(searches: list[list[Document]]) -> list[Document]:
    if len(searches) == 1:
        return searches[0]
    return [from_candidate(candidate) for candidate in merge_searches(map(to_candidates, searches))]
