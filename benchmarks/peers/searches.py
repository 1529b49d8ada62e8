"""Retrievers of LangChain and LlamaIndex over units, by name; importing this file adds them to plans."""

from collections.abc import Sequence
from typing import Any

from benchmarks.peers.splitters import langchain_embeddings
from precise_rag._extras import require
from precise_rag.evaluation.units import MODEL_SEARCHES, SEARCHES, Unit, UnitIndex
from precise_rag.protocols import LLM, Encoder
from precise_rag.types import Candidate, Document, Message


class LangChainSearch:
    """LangChain's InMemoryVectorStore over units; subclasses put other retrievers around it.

    A candidate's score is its negative position, because these retrievers return no scores.
    """

    def __init__(self, documents: Sequence[Document], units: Sequence[Unit], encoder: Encoder) -> None:
        record = require("langchain_core.documents", extra="langchain").Document
        stores = require("langchain_core.vectorstores", extra="langchain")
        self._units = units
        self._texts = {document.id: document.text for document in documents}
        self._records = [record(page_content=u.text, metadata={"row": row}) for row, u in enumerate(units)]
        self._embeddings = langchain_embeddings(encoder)
        store = stores.InMemoryVectorStore(self._embeddings)
        store.add_documents(self._records)
        self._by_vector = store.as_retriever()
        self._retriever = self._combine()

    def __len__(self) -> int:
        return len(self._units)

    def search(self, query: str, top_k: int = 10) -> list[Candidate]:
        """Return at most `top_k` units in the retriever's order."""
        self._limit(top_k)
        found = self._retriever.invoke(query)[:top_k]
        units = [self._units[record.metadata["row"]] for record in found]
        return [
            Candidate(doc_id, start, end, self._texts[doc_id][start:end], -float(rank), "rank")
            for rank, (doc_id, start, end, _) in enumerate(units)
        ]

    def _combine(self) -> Any:
        return self._by_vector

    def _limit(self, top_k: int) -> None:
        self._by_vector.search_kwargs["k"] = top_k


class LangChainEnsemble(LangChainSearch):
    """LangChain's EnsembleRetriever over BM25Retriever and InMemoryVectorStore, with equal weights."""

    def _combine(self) -> Any:
        retrievers = require("langchain_classic.retrievers", extra="peers")
        community = require("langchain_community.retrievers", extra="peers")
        self._by_word = community.BM25Retriever.from_documents(self._records)
        return retrievers.EnsembleRetriever(
            retrievers=[self._by_word, self._by_vector], weights=[0.5, 0.5], id_key="row"
        )

    def _limit(self, top_k: int) -> None:
        super()._limit(top_k)
        self._by_word.k = top_k


class LangChainFilter(LangChainSearch):
    """LangChain's EmbeddingsFilter, at a cosine of 0.4, after InMemoryVectorStore."""

    def _combine(self) -> Any:
        retrievers = require("langchain_classic.retrievers", extra="peers")
        compressors = require("langchain_classic.retrievers.document_compressors", extra="peers")
        narrow = compressors.EmbeddingsFilter(embeddings=self._embeddings, k=None, similarity_threshold=0.4)
        return retrievers.ContextualCompressionRetriever(
            base_compressor=narrow, base_retriever=self._by_vector
        )


class LlamaIndexLLMRerank:
    """LlamaIndex's LLMRerank, with its own prompt and batches of ten, after a dense search.

    Units that the model does not name are dropped. A reply that LLMRerank cannot parse returns no units;
    some of its versions raise an error there.
    """

    def __init__(
        self, documents: Sequence[Document], units: Sequence[Unit], encoder: Encoder, llm: LLM
    ) -> None:
        self._dense = UnitIndex(documents, units, encoder, "dense")
        self._llm = _llamaindex_llm(llm)

    def __len__(self) -> int:
        return len(self._dense)

    def search(self, query: str, top_k: int = 10) -> list[Candidate]:
        """Return those of the `top_k` most similar units that the model names, in the model's order."""
        library = require("llama_index.core.postprocessor", extra="llamaindex")
        schema = require("llama_index.core.schema", extra="llamaindex")
        found = self._dense.search(query, top_k)
        nodes = [
            schema.NodeWithScore(node=schema.TextNode(id_=str(row), text=c.text), score=c.score)
            for row, c in enumerate(found)
        ]
        try:
            chosen = library.LLMRerank(llm=self._llm, top_n=top_k).postprocess_nodes(nodes, query_str=query)
        except (IndexError, ValueError):
            return []
        rows = dict.fromkeys(int(node.node.node_id) for node in chosen)
        return [
            Candidate(c.doc_id, c.start, c.end, c.text, -float(rank), "rank")
            for rank, c in enumerate(found[row] for row in rows)
        ]


def _llamaindex_llm(llm: LLM) -> Any:
    """Wrap a language model as a LlamaIndex LLM."""
    base = require("llama_index.core.llms", extra="llamaindex")

    def ask(messages: Sequence[Message]) -> str:
        return llm.complete(messages).text

    def chat(self: Any, messages: Sequence[Any], **_: Any) -> Any:
        text = ask([Message(message.role.value, message.content or "") for message in messages])
        return base.ChatResponse(message=base.ChatMessage(role="assistant", content=text))

    def complete(self: Any, prompt: str, formatted: bool = False, **_: Any) -> Any:
        return base.CompletionResponse(text=ask([Message("user", prompt)]))

    def stream_complete(self: Any, prompt: str, formatted: bool = False, **_: Any) -> Any:
        yield complete(self, prompt)

    methods = {
        "chat": chat,
        "complete": complete,
        "stream_complete": stream_complete,
        "metadata": property(lambda self: base.LLMMetadata(is_chat_model=True, model_name=llm.name)),
    }
    return type("EvaluatedLLM", (base.CustomLLM,), methods)()


SEARCHES |= {"langchain-ensemble": LangChainEnsemble, "langchain-filter": LangChainFilter}
MODEL_SEARCHES |= {"llamaindex-llm-rerank": LlamaIndexLLMRerank}
