"""The app of LangChain: each line of its table in docs/migration.md that needs no more packages."""

from collections.abc import Sequence
from typing import Any

from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document as Source
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from benchmarks.adoption.app import N_FOUND, App, Ask, Line, RightModel
from benchmarks.sent import Piece
from langchain_precise import (
    EvidenceCompressor,
    PreciseEmbeddings,
    PreciseRetriever,
    SelfFeedbackChain,
    SemanticSegmentationTextSplitter,
    papers,
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

    def retrieved(retriever: Any, *parts: Any) -> Ask:
        def ask(query: str) -> list[Piece]:
            found = retriever.invoke(query)
            for part in parts:
                found = part.compress_documents(found, query)
            return [_piece(document, texts) for document in found]

        return ask

    def best(store: InMemoryVectorStore, k: int, *parts: Any) -> Ask:
        return retrieved(store.as_retriever(search_kwargs={"k": k}), *parts)

    def answered(retriever: Any) -> Ask:
        chain = SelfFeedbackChain(retriever, model.llm, feedback=None, reranker=reranker)
        return lambda query: [_piece(document, texts) for document in chain.invoke(query)["context"]]

    recursive = RecursiveCharacterTextSplitter(add_start_index=True)
    stock, ours = store_of(recursive), store_of(SemanticSegmentationTextSplitter(add_start_index=True))
    gradient = papers.GradientSelectionCompressor
    evidence = EvidenceCompressor(reranker=reranker)
    parts = {
        "EvidenceCompressor()": evidence,
        "GradientSelectionCompressor()": gradient(reranker=reranker),
        "GradientSelectionCompressor(min_score=0.2)": gradient(reranker=reranker, min_score=0.2),
        "RerankCompressor(top_n=3)": papers.RerankCompressor(reranker=reranker, top_n=3),
        "RedundancyCompressor(encoder=…)": papers.RedundancyCompressor(embeddings=encoder),
        "RelevanceFilterCompressor(llm=…)": papers.RelevanceFilterCompressor(llm=model.llm),
    }
    lines = []
    for name, store in (("RecursiveCharacter", stock), ("SemanticSegmentation", ours)):
        chunks = f"`{name}TextSplitter()`"
        many = store.as_retriever(search_kwargs={"k": N_FOUND})
        lines += [
            Line(chunks, "`as_retriever()`, k 4", best(store, K), is_stock=True),
            Line(chunks, "k 4, and `EvidenceCompressor()`", best(store, K, evidence)),
            *(Line(chunks, f"k 10 and `{code}`", best(store, N_FOUND, part)) for code, part in parts.items()),
            Line(chunks, "k 10 and `SelfFeedbackChain`", answered(many)),
        ]
    greedy = store_of(papers.GreedySemanticTextSplitter(encoder, add_start_index=True))
    lines.append(Line("`GreedySemanticTextSplitter()`", "`as_retriever()`, k 4", best(greedy, K)))
    parents = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(embeddings),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=0),
        parent_splitter=recursive,
    )
    parents.add_documents(sources)
    sentences = SentenceContextIndex.build(documents, encoder)
    in_context = papers.SentenceContextRetriever.from_index
    hybrid = papers.HybridRetriever.from_index(index)
    whole = {
        "`SentenceContextRetriever`, passages": in_context(sentences, search_kwargs={"returns": "passage"}),
        "`SentenceContextRetriever`": in_context(sentences),
        "`HybridRetriever`": hybrid,
        "`PreciseRetriever`": PreciseRetriever.from_index(index, reranker=reranker),
    }
    lines.append(Line("documents", "`ParentDocumentRetriever`", retrieved(parents), is_stock=True))
    lines += [Line("documents", code, retrieved(retriever)) for code, retriever in whole.items()]
    lines.append(Line("documents", "`SelfFeedbackChain` on `HybridRetriever`", answered(hybrid)))
    return App("LangChain", lambda query, k: best(stock, k)(query), lines)


def _piece(document: Source, texts: dict[str, str]) -> Piece:
    """A document as it is sent, where it lies in its source."""
    text, metadata, facts = document.page_content, document.metadata, read_facts(document)
    if "start_index" not in metadata:
        return Piece(facts["doc_id"], facts["start"], facts["end"], text)
    start = texts[metadata["source"]].find(text, metadata["start_index"])
    return Piece(metadata["source"], start, start + len(text), text)
