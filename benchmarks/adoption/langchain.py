"""The app of LangChain: each line of its table in docs/guides/migration.md that needs no more packages."""

from collections.abc import Sequence
from typing import Any

from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document as Source
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from benchmarks.adoption.app import N_FOUND, App, Ask, Line, Piece, RightModel
from langchain_precise import (
    EvidenceCompressor,
    PreciseEmbeddings,
    PreciseRetriever,
    SelfFeedbackChain,
    SemanticSegmentationTextSplitter,
)
from langchain_precise.papers import (
    GradientSelectionCompressor,
    GreedySemanticTextSplitter,
    HybridRetriever,
    RedundancyCompressor,
    RelevanceFilterCompressor,
    RerankCompressor,
    SentenceContextRetriever,
)
from precise_rag import read_facts
from precise_rag.index import HybridIndex, SentenceContextIndex
from precise_rag.types import Document

K = 4
"""The number that a LangChain app retrieves if it says nothing."""


def langchain(
    documents: Sequence[Document], index: HybridIndex, encoder: Any, reranker: Any, model: RightModel
) -> App:
    """The stock app, and its lines."""
    sources = [Source(d.text, id=d.id, metadata={"source": d.id}) for d in documents]
    texts = {d.id: d.text for d in documents}
    embeddings = PreciseEmbeddings(encoder)

    def store_of(splitter: Any) -> InMemoryVectorStore:
        return InMemoryVectorStore.from_documents(splitter.split_documents(sources), embeddings)

    def pieces(found: Sequence[Source]) -> list[Piece]:
        return [_piece(document, texts) for document in found]

    def found(store: InMemoryVectorStore, k: int, *parts: Any) -> Ask:
        retriever = store.as_retriever(search_kwargs={"k": k})

        def ask(query: str) -> list[Piece]:
            documents = retriever.invoke(query)
            for part in parts:
                documents = part.compress_documents(documents, query)
            return pieces(documents)

        return ask

    def retrieved(retriever: Any) -> Ask:
        return lambda query: pieces(retriever.invoke(query))

    def answered(retriever: Any) -> Ask:
        chain = SelfFeedbackChain(retriever, model.llm, feedback=None, reranker=reranker)
        return lambda query: pieces(chain.invoke(query)["context"])

    recursive = RecursiveCharacterTextSplitter(add_start_index=True)
    stock = store_of(recursive)
    kinds = {
        "`RecursiveCharacterTextSplitter()`": stock,
        "`SemanticSegmentationTextSplitter()`": store_of(
            SemanticSegmentationTextSplitter(add_start_index=True)
        ),
    }
    lines = []
    for chunks, store in kinds.items():
        parts = {
            "EvidenceCompressor()": EvidenceCompressor(reranker=reranker),
            "GradientSelectionCompressor()": GradientSelectionCompressor(reranker=reranker),
            "GradientSelectionCompressor(min_score=0.2)": GradientSelectionCompressor(
                reranker=reranker, min_score=0.2
            ),
            "RerankCompressor(top_n=3)": RerankCompressor(reranker=reranker, top_n=3),
            "RedundancyCompressor(encoder=…)": RedundancyCompressor(embeddings=encoder),
            "RelevanceFilterCompressor(llm=…)": RelevanceFilterCompressor(llm=model.llm),
        }
        evidence = parts["EvidenceCompressor()"]
        lines += [
            Line(chunks, "`as_retriever()`, k 4", found(store, K), is_stock=True),
            Line(chunks, "k 4, and `EvidenceCompressor()`", found(store, K, evidence)),
            *(
                Line(chunks, f"k 10 and `{code}`", found(store, N_FOUND, part))
                for code, part in parts.items()
            ),
            Line(
                chunks,
                "k 10 and `SelfFeedbackChain`",
                answered(store.as_retriever(search_kwargs={"k": N_FOUND})),
            ),
        ]
    greedy = store_of(GreedySemanticTextSplitter(encoder, add_start_index=True))
    lines.append(Line("`GreedySemanticTextSplitter()`", "`as_retriever()`, k 4", found(greedy, K)))
    parents = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(embeddings),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=0),
        parent_splitter=recursive,
    )
    parents.add_documents(sources)
    sentences = SentenceContextIndex.build(documents, encoder)
    passages = SentenceContextRetriever.from_index(sentences, search_kwargs={"returns": "passage"})
    lines += [
        Line("documents", "`ParentDocumentRetriever`", retrieved(parents), is_stock=True),
        Line("documents", "`SentenceContextRetriever`, passages", retrieved(passages)),
        Line(
            "documents",
            "`SentenceContextRetriever`",
            retrieved(SentenceContextRetriever.from_index(sentences)),
        ),
        Line("documents", "`HybridRetriever`", retrieved(HybridRetriever.from_index(index))),
        Line(
            "documents",
            "`PreciseRetriever`",
            retrieved(PreciseRetriever.from_index(index, reranker=reranker)),
        ),
        Line(
            "documents",
            "`SelfFeedbackChain` on `HybridRetriever`",
            answered(HybridRetriever.from_index(index)),
        ),
    ]
    return App("LangChain", lambda query, k: found(stock, k)(query), lines)


def _piece(document: Source, texts: dict[str, str]) -> Piece:
    """A document as it is sent, where it lies in its source."""
    text, metadata, facts = document.page_content, document.metadata, read_facts(document)
    if "start_index" not in metadata:
        return Piece(facts["doc_id"], facts["start"], facts["end"], text)
    start = texts[metadata["source"]].find(text, metadata["start_index"])
    return Piece(metadata["source"], start, start + len(text), text)
