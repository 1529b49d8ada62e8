"""A LangChain retriever as what a pipeline searches."""

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import RetrieverLike

from langchain_precise.convert import to_candidates
from langchain_precise.retrievers import IndexRetriever
from precise_rag.checks import check_methods
from precise_rag.errors import InputError
from precise_rag.protocols import Neighbours
from precise_rag.types import Candidate, Stretch


class RetrieverSource:
    """What a retriever finds, as candidates; it decides how many.

    retriever: any Runnable from a question to documents. Its runs are children of the current one.
    """

    def __init__(self, retriever: RetrieverLike) -> None:
        self.retriever = retriever

    @property
    def encoder(self) -> Any:
        """The encoder of the retriever's index, if it is one of ours."""
        return getattr(getattr(self.retriever, "index", None), "encoder", None)

    def search(self, query: str, top_k: int, /, *, filter: Any = None) -> list[Candidate]:
        """Return the retriever's documents as candidates. Raises InputError for a filter."""
        _check(filter)
        return to_candidates(_documents(self.retriever.invoke(query)))

    async def asearch(self, query: str, top_k: int, /, *, filter: Any = None) -> list[Candidate]:
        """Run `search` without blocking the event loop."""
        _check(filter)
        return to_candidates(_documents(await self.retriever.ainvoke(query)))


class SentenceSource(RetrieverSource):
    """One of our retrievers over an index of sentences; the pipeline decides how many it finds.

    Its own `k` and `returns` hold where the sentences are not asked for.
    """

    retriever: IndexRetriever

    def search(
        self, query: str, top_k: int, /, *, filter: Any = None, returns: str | None = None
    ) -> list[Candidate]:
        """Return the retriever's documents as candidates; with returns, `top_k` pieces of that kind."""
        _check(filter)
        options: dict[str, Any] = {} if returns is None else {"k": top_k, "returns": returns}
        return to_candidates(self.retriever.invoke(query, **options))

    async def asearch(
        self, query: str, top_k: int, /, *, filter: Any = None, returns: str | None = None
    ) -> list[Candidate]:
        """Run `search` without blocking the event loop."""
        _check(filter)
        options: dict[str, Any] = {} if returns is None else {"k": top_k, "returns": returns}
        return to_candidates(await self.retriever.ainvoke(query, **options))

    def neighbours(self, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the sentences around some of the index."""
        index = self.retriever.index
        return index.neighbours(sentences, reach) if isinstance(index, Neighbours) else []


def source_of(retriever: RetrieverLike) -> RetrieverSource:
    """Return a retriever as a source, which knows sentences if it is one of ours over an index of them."""
    advice = "pass a LangChain retriever, such as vectorstore.as_retriever()"
    check_methods("retriever", retriever, ("invoke", "ainvoke"), advice)
    knows = isinstance(retriever, IndexRetriever) and isinstance(retriever.index, Neighbours)
    return (SentenceSource if knows else RetrieverSource)(retriever)


def _check(filter: Any) -> None:
    if filter is not None:
        raise InputError("a filter is for a pipeline over an index; set it on the retriever instead")


def _documents(returned: Any) -> list[Document]:
    if isinstance(returned, list) and all(isinstance(document, Document) for document in returned):
        return returned
    raise InputError(f"the retriever must return a list of documents, got {type(returned).__name__}")
