"""What a pipeline searches in LangChain: a retriever, or a vector store."""

import inspect
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike
from langchain_core.vectorstores import VectorStore

from langchain_precise.convert import to_candidates
from precise_rag.checks import check_methods, check_number, items_of, shown
from precise_rag.errors import InputError
from precise_rag.types import Candidate

_FOUND = "what the retriever returns"


class RetrieverSource:
    """What a Runnable finds, as candidates; it decides how many. Its runs are children of the current one."""

    def __init__(self, retriever: RetrieverLike) -> None:
        advice = "pass a LangChain retriever, such as vectorstore.as_retriever()"
        check_methods("retriever", retriever, ("invoke", "ainvoke"), advice)
        self.retriever = retriever

    def search(self, query: str, top_k: int, /, *, filter: Any = None) -> list[Candidate]:
        """Return what is found as candidates. Raises InputError for a filter that cannot be passed on."""
        return to_candidates(items_of(_FOUND, self._retriever(filter, top_k).invoke(query), Document))

    async def asearch(self, query: str, top_k: int, /, *, filter: Any = None) -> list[Candidate]:
        """Run `search` without blocking the event loop."""
        found = await self._retriever(filter, top_k).ainvoke(query)
        return to_candidates(items_of(_FOUND, found, Document))

    def _retriever(self, filter: Any, top_k: int) -> RetrieverLike:
        if filter is not None:
            raise InputError("a filter is for a pipeline over an index; set it on the retriever instead")
        return self.retriever


class StoreSource(RetrieverSource):
    """A vector store of chunks as what a pipeline searches; see `PreciseRetriever.from_store`."""

    def __init__(
        self, store: VectorStore, fetch_k: int, search_kwargs: Mapping[str, Any], filter: Any = None
    ) -> None:
        if not isinstance(store, VectorStore):
            raise InputError(f"store must be a LangChain vector store, got {shown(store)}")
        check_number("fetch_k", fetch_k, least=1, whole=True)
        named = {} if filter is None else {_filter_argument(store): filter}
        if twice := named.keys() & search_kwargs.keys():
            raise InputError(f"pass filter= or search_kwargs={{{twice.pop()!r}: …}}, not both")
        self.store, self.fetch_k, given = store, fetch_k, {**search_kwargs, **named}.items()
        self.search_kwargs = {name: deepcopy(one) if isinstance(one, dict) else one for name, one in given}

    def _retriever(self, filter: Any, top_k: int) -> RetrieverLike:
        given = {} if filter is None else {_filter_argument(self.store): filter}
        if given.keys() & self.search_kwargs.keys():
            raise InputError("the store has a filter for all calls, and takes no second one")
        return self.store.as_retriever(search_kwargs={**self.search_kwargs, "k": top_k, **given})


def _filter_argument(store: VectorStore) -> str:
    """The name under which the store's search takes a filter: "expr" in Milvus, elsewhere "filter"."""
    parameters = inspect.signature(store.similarity_search).parameters
    return "expr" if "expr" in parameters and "filter" not in parameters else "filter"
