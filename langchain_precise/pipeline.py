"""The whole retrieval path as one retriever."""

from collections.abc import Iterable
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import Field, SkipValidation

from langchain_precise.convert import to_core_documents, to_document
from langchain_precise.events import observe, observing
from precise_rag.encoders import DEFAULT_ENCODER
from precise_rag.pipeline import PreciseRAG
from precise_rag.protocols import Index
from precise_rag.trace import Trace
from precise_rag.types import Selection


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
