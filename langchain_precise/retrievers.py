"""Retrievers: over one of the core's indexes, or over the whole path."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.runnables.config import run_in_executor
from pydantic import Field, SkipValidation

from langchain_precise.convert import to_core_documents, to_document
from langchain_precise.events import observe, observing
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.index import HybridIndex as _HybridIndex
from precise_rag.index import SentenceContextIndex as _SentenceContextIndex
from precise_rag.index import WordSentenceIndex as _WordSentenceIndex
from precise_rag.pipeline import PreciseRAG
from precise_rag.protocols import Index
from precise_rag.trace import Trace
from precise_rag.types import Candidate, Selection


class IndexRetriever(BaseRetriever):
    """Any index of the core, as a retriever.

    k: how many documents come back. search_kwargs: further options of the index's own `search`.
    Both can be overruled in one call: `invoke(query, k=3, …)`. Results are new documents with the
    metadata of their source, their offsets in it and their score (see `convert`).
    """

    index: SkipValidation[Index]
    k: int = Field(default=10, ge=1)
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    _index_class: ClassVar[Any]

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        encoder: Any = DEFAULT_ENCODER,
        *,
        k: int = 10,
        search_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """A retriever over a new index of `documents`.

        encoder: a name or path, an object of the core's, or LangChain embeddings. `options` go to
        the index.
        """
        index = cls._index_class.build(to_core_documents(documents), load_encoder(encoder), **options)
        return cls.from_index(index, k=k, search_kwargs=dict(search_kwargs or {}))

    @classmethod
    def from_index(cls, index: Index, **fields: Any) -> Self:
        """A retriever over an index that is built or loaded already."""
        return cls(index=index, **fields)

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        """Index more documents, in place of those with the same ids; returns their ids."""
        added = to_core_documents(documents)
        self.index.add(added)
        return [document.id for document in added]

    def delete(self, ids: Iterable[str]) -> None:
        """Forget documents by id. Raises InputError, changing nothing, if one is unknown."""
        self.index.delete(ids)

    def search(self, query: str, k: int | None = None, **search_kwargs: Any) -> list[Candidate]:
        """What the index itself finds, before it becomes documents."""
        return self.index.search(query, self.k if k is None else k, **(self.search_kwargs | search_kwargs))

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        **search_kwargs: Any,
    ) -> list[Document]:
        return [to_document(candidate) for candidate in self.search(query, k, **search_kwargs)]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        **search_kwargs: Any,
    ) -> list[Document]:
        search = partial(self.search, query, k, **search_kwargs)
        return [to_document(candidate) for candidate in await run_in_executor(None, search)]


class SentenceContextRetriever(IndexRetriever):
    """Finds sentences, each scored together with the passage around it (ParetoRAG)."""

    _index_class = _SentenceContextIndex


class WordSentenceRetriever(IndexRetriever):
    """Finds documents by shared words first, then sentences in them by meaning."""

    _index_class = _WordSentenceIndex


class HybridRetriever(IndexRetriever):
    """Finds by words and by meaning at once, both in context; the best sentence brings its passage."""

    _index_class = _HybridIndex


class PreciseRetriever(BaseRetriever):
    """The whole retrieval path: search, reranking, filters, and as many documents as it takes.

    rag: the path. k: the most that may come back; how many do is read from the scores.
    """

    rag: SkipValidation[PreciseRAG]
    k: int | None = Field(default=None, ge=1)

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        encoder: Any = DEFAULT_ENCODER,
        *,
        k: int | None = None,
        **options: Any,
    ) -> Self:
        """A retriever over a new hybrid index of `documents`; `options` go to `PreciseRAG`."""
        return cls(
            rag=PreciseRAG.from_documents(to_core_documents(documents), encoder=encoder, **options), k=k
        )

    @classmethod
    def from_index(cls, index: Index, *, k: int | None = None, **options: Any) -> Self:
        """A retriever over an index that is built or loaded already; `options` go to `PreciseRAG`."""
        return cls(rag=PreciseRAG(index, **options), k=k)

    def select(self, query: str) -> Selection:
        """Every candidate, kept or dropped, with its score and the reason."""
        return self.rag.retrieve(query)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        selection = self._path.invoke(query, {"callbacks": run_manager.get_child()})
        return self._documents(selection, k)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        selection = await self._path.ainvoke(query, {"callbacks": run_manager.get_child()})
        return self._documents(selection, k)

    @property
    def _path(self) -> Runnable[str, Selection]:
        """The path as a run of its own, so that what models and filters do in it is traced there."""
        return RunnableLambda(self._retrieve, self._aretrieve, name=type(self.rag).__name__)

    def _retrieve(self, query: str) -> Selection:
        return self.rag.retrieve(query, trace=Trace(query, observer=observe))

    async def _aretrieve(self, query: str) -> Selection:
        async with observing() as observer:
            return await self.rag.aretrieve(query, trace=Trace(query, observer=observer))

    def _documents(self, selection: Selection, k: int | None) -> list[Document]:
        kept = [decision for decision in selection.decisions if decision.kept]
        return [to_document(d.candidate, d.reason) for d in kept[: self.k if k is None else k]]
