"""LangChain's own ensemble of retrievers over units, as an index for comparisons."""

from collections.abc import Sequence

from precise_rag._extras import require
from precise_rag.evaluation.splitters import LangChainEmbeddings
from precise_rag.evaluation.units import Unit
from precise_rag.protocols import Encoder
from precise_rag.types import Candidate, Document


class LangChainEnsemble:
    """EnsembleRetriever over BM25Retriever and InMemoryVectorStore, equal weights."""

    def __init__(self, documents: Sequence[Document], units: Sequence[Unit], encoder: Encoder) -> None:
        retrievers = require("langchain_classic.retrievers", extra="peers")
        community = require("langchain_community.retrievers", extra="peers")
        stores = require("langchain_core.vectorstores", extra="langchain")
        record = require("langchain_core.documents", extra="langchain").Document
        self._units = units
        self._texts = {document.id: document.text for document in documents}
        records = [record(page_content=unit.text, metadata={"row": row}) for row, unit in enumerate(units)]
        store = stores.InMemoryVectorStore(LangChainEmbeddings(encoder))
        store.add_documents(records)
        self._by_word = community.BM25Retriever.from_documents(records)
        self._by_vector = store.as_retriever()
        self._ensemble = retrievers.EnsembleRetriever(
            retrievers=[self._by_word, self._by_vector], weights=[0.5, 0.5], id_key="row"
        )

    def __len__(self) -> int:
        return len(self._units)

    def search(self, query: str, top_k: int = 10) -> list[Candidate]:
        """At most `top_k` units in the ensemble's order; the score is only the order."""
        self._by_word.k = top_k
        self._by_vector.search_kwargs["k"] = top_k
        found = self._ensemble.invoke(query)[:top_k]
        units = [self._units[record.metadata["row"]] for record in found]
        return [
            Candidate(doc_id, start, end, self._texts[doc_id][start:end], -float(rank), "rank")
            for rank, (doc_id, start, end, _) in enumerate(units)
        ]
