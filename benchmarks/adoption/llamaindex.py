"""The app of LlamaIndex: each line of its table in docs/guides/migration.md that needs no more packages."""

from collections.abc import Sequence
from typing import Any

from llama_index.core import Document as Source
from llama_index.core import VectorStoreIndex
from llama_index.core.indices.postprocessor import (
    MetadataReplacementPostProcessor,
    SentenceEmbeddingOptimizer,
    SimilarityPostprocessor,
)
from llama_index.core.node_parser import (
    SemanticSplitterNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
)
from llama_index.core.schema import MetadataMode

from benchmarks.adoption.app import N_FOUND, App, Ask, Line, Piece, RightModel
from llamaindex_precise import (
    EvidencePostprocessor,
    PreciseEmbedding,
    PreciseRetriever,
    SelfFeedbackQueryEngine,
    SemanticSegmentationNodeParser,
)
from llamaindex_precise.papers import (
    GradientSelectionPostprocessor,
    GreedySemanticNodeParser,
    HybridRetriever,
    PreciseRerankPostprocessor,
    RelevanceFilterPostprocessor,
    SentenceContextNodeParser,
    SentenceContextRetriever,
)
from precise_rag.index import HybridIndex, SentenceContextIndex
from precise_rag.sentences import load_sentence_splitter
from precise_rag.types import Document

TOP_K = 2
"""The number that a LlamaIndex app retrieves if it says nothing."""


def llamaindex(
    documents: Sequence[Document], index: HybridIndex, encoder: Any, reranker: Any, model: RightModel
) -> App:
    """The stock app, and its lines."""
    sources = [Source(id_=d.id, text=d.text) for d in documents]
    texts = {d.id: d.text for d in documents}
    embedding = PreciseEmbedding()

    def store_of(parser: Any) -> VectorStoreIndex:
        nodes = parser.get_nodes_from_documents(sources)
        plain = [node for node in nodes if node.embedding is None]
        vectors = encoder.encode([node.get_content(MetadataMode.EMBED) for node in plain])
        for node, vector in zip(plain, vectors, strict=True):
            node.embedding = vector.tolist()
        return VectorStoreIndex(nodes, embed_model=embedding)

    def found(store: VectorStoreIndex, top_k: int, *parts: Any) -> Ask:
        retriever = store.as_retriever(similarity_top_k=top_k)

        def ask(query: str) -> list[Piece]:
            nodes = retriever.retrieve(query)
            for part in parts:
                nodes = part.postprocess_nodes(nodes, query_str=query)
            return [piece for item in nodes for piece in _pieces(item.node, texts)]

        return ask

    def answered(retriever: Any) -> Ask:
        engine = SelfFeedbackQueryEngine(retriever, model.llm, feedback=None, reranker=reranker)
        return lambda query: [
            piece for item in engine.query(query).source_nodes for piece in _pieces(item.node, texts)
        ]

    def retrieved(retriever: Any) -> Ask:
        return lambda query: [
            piece for item in retriever.retrieve(query) for piece in _pieces(item.node, texts)
        ]

    stock = store_of(SentenceSplitter())
    ours = store_of(SemanticSegmentationNodeParser())
    kinds = {"`SentenceSplitter()`": stock, "`SemanticSegmentationNodeParser()`": ours}
    evidence = EvidencePostprocessor(reranker=reranker)
    lines = []
    for chunks, store in kinds.items():
        lines += [
            Line(chunks, "`as_retriever()`, top 2", found(store, TOP_K), is_stock=True),
            Line(chunks, "top 2, and `EvidencePostprocessor()`", found(store, TOP_K, evidence)),
            Line(chunks, "top 10 and `EvidencePostprocessor()`", found(store, N_FOUND, evidence)),
            Line(
                chunks,
                "top 10 and `SimilarityPostprocessor(0.7)`",
                found(store, N_FOUND, SimilarityPostprocessor(similarity_cutoff=0.7)),
                is_stock=True,
            ),
            Line(
                chunks,
                "top 10 and `GradientSelectionPostprocessor()`",
                found(store, N_FOUND, GradientSelectionPostprocessor(reranker=reranker)),
            ),
            Line(
                chunks,
                "top 10 and `PreciseRerankPostprocessor(top_n=2)`",
                found(store, N_FOUND, PreciseRerankPostprocessor(reranker=reranker, top_n=TOP_K)),
            ),
            Line(
                chunks,
                "top 10 and `RelevanceFilterPostprocessor(llm=…)`",
                found(store, N_FOUND, RelevanceFilterPostprocessor(llm=model.llm)),
            ),
            Line(
                chunks,
                "top 2, and `SentenceEmbeddingOptimizer(percentile_cutoff=0.5)`",
                found(store, TOP_K, SentenceEmbeddingOptimizer(embed_model=embedding, percentile_cutoff=0.5)),
                is_stock=True,
            ),
            Line(
                chunks,
                "top 10 and `SelfFeedbackQueryEngine`",
                answered(store.as_retriever(similarity_top_k=N_FOUND)),
            ),
        ]
    window = MetadataReplacementPostProcessor(target_metadata_key="window")
    others = {
        "`SemanticSplitterNodeParser()`": SemanticSplitterNodeParser(embed_model=embedding),
        "`GreedySemanticNodeParser()`": GreedySemanticNodeParser(embed_model=encoder),
        "`SentenceWindowNodeParser()`": SentenceWindowNodeParser(),
        "`SentenceContextNodeParser()`": SentenceContextNodeParser(embed_model=encoder),
    }
    for chunks, parser in others.items():
        parts = [window] if "Window" in chunks or "Context" in chunks else []
        stock_part = "Splitter" in chunks or "Window" in chunks
        lines.append(
            Line(chunks, "`as_retriever()`, top 2", found(store_of(parser), TOP_K, *parts), stock_part)
        )
    sentences = SentenceContextIndex.build(documents, encoder)
    lines += [
        Line("documents", "`SentenceContextRetriever`", retrieved(SentenceContextRetriever(sentences))),
        Line("documents", "`HybridRetriever`", retrieved(HybridRetriever(index))),
        Line(
            "documents",
            "`PreciseRetriever`",
            retrieved(PreciseRetriever.from_index(index, reranker=reranker)),
        ),
        Line("documents", "`SelfFeedbackQueryEngine` on `HybridRetriever`", answered(HybridRetriever(index))),
    ]
    return App("LlamaIndex", lambda query, k: found(stock, k)(query), lines)


def _pieces(node: Any, texts: dict[str, str]) -> list[Piece]:
    """A node as it is sent; its sentences, if another component has changed its text."""
    doc_id, start, end = node.ref_doc_id, node.start_char_idx, node.end_char_idx
    if texts[doc_id][start:end] == node.text:
        return [Piece(doc_id, start, end, node.text)]
    spans = load_sentence_splitter().split(node.text)
    sentences = [sentence for span in spans if (sentence := node.text[span.start : span.end].strip())]
    places = [(texts[doc_id].find(sentence), sentence) for sentence in sentences]
    return [Piece(doc_id, place, place + len(text) if place >= 0 else place, text) for place, text in places]
