"""The app of LlamaIndex: each line of its table in docs/migration.md that needs no more packages."""

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

from benchmarks.adoption.app import N_FOUND, App, Ask, Line, RightModel
from benchmarks.sent import Piece
from llamaindex_precise import (
    EvidencePostprocessor,
    PreciseEmbedding,
    PreciseRetriever,
    SelfFeedbackQueryEngine,
    SemanticSegmentationNodeParser,
    papers,
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

    def retrieved(retriever: Any, *parts: Any) -> Ask:
        def ask(query: str) -> list[Piece]:
            nodes = retriever.retrieve(query)
            for part in parts:
                nodes = part.postprocess_nodes(nodes, query_str=query)
            return [piece for item in nodes for piece in _pieces(item.node, texts)]

        return ask

    def best(store: VectorStoreIndex, top_k: int, *parts: Any) -> Ask:
        return retrieved(store.as_retriever(similarity_top_k=top_k), *parts)

    def answered(retriever: Any) -> Ask:
        engine = SelfFeedbackQueryEngine(retriever, model.llm, feedback=None, reranker=reranker)
        return lambda query: [
            piece for item in engine.query(query).source_nodes for piece in _pieces(item.node, texts)
        ]

    stock, ours = store_of(SentenceSplitter()), store_of(SemanticSegmentationNodeParser())
    evidence = EvidencePostprocessor(reranker=reranker)
    rerank = papers.PreciseRerankPostprocessor(reranker=reranker, top_n=TOP_K)
    optimizer = SentenceEmbeddingOptimizer(embed_model=embedding, percentile_cutoff=0.5)
    parts: list[tuple[str, int, Any]] = [
        ("top 2, and `EvidencePostprocessor()`", TOP_K, evidence),
        ("top 10 and `EvidencePostprocessor()`", N_FOUND, evidence),
        (
            "top 10 and `SimilarityPostprocessor(0.7)`",
            N_FOUND,
            SimilarityPostprocessor(similarity_cutoff=0.7),
        ),
        (
            "top 10 and `GradientSelectionPostprocessor()`",
            N_FOUND,
            papers.GradientSelectionPostprocessor(reranker=reranker),
        ),
        ("top 10 and `PreciseRerankPostprocessor(top_n=2)`", N_FOUND, rerank),
        (
            "top 10 and `RelevanceFilterPostprocessor(llm=…)`",
            N_FOUND,
            papers.RelevanceFilterPostprocessor(llm=model.llm),
        ),
        ("top 2, and `SentenceEmbeddingOptimizer(percentile_cutoff=0.5)`", TOP_K, optimizer),
    ]
    lines = []
    for chunks, store in (("`SentenceSplitter()`", stock), ("`SemanticSegmentationNodeParser()`", ours)):
        many = store.as_retriever(similarity_top_k=N_FOUND)
        lines += [
            Line(chunks, "`as_retriever()`, top 2", best(store, TOP_K), is_stock=True),
            *(
                Line(chunks, code, best(store, k, part), "Similarity" in code or "Optimizer" in code)
                for code, k, part in parts
            ),
            Line(chunks, "top 10 and `SelfFeedbackQueryEngine`", answered(many)),
        ]
    window = MetadataReplacementPostProcessor(target_metadata_key="window")
    for parser, *after in (
        (SemanticSplitterNodeParser(embed_model=embedding),),
        (papers.GreedySemanticNodeParser(embed_model=encoder),),
        (SentenceWindowNodeParser(), window),
        (papers.SentenceContextNodeParser(embed_model=encoder), window),
    ):
        name = type(parser).__name__
        stock_part = "Splitter" in name or "Window" in name
        lines.append(
            Line(f"`{name}()`", "`as_retriever()`, top 2", best(store_of(parser), TOP_K, *after), stock_part)
        )
    hybrid = papers.HybridRetriever(index)
    sentences = SentenceContextIndex.build(documents, encoder)
    whole = {
        "`SentenceContextRetriever`": papers.SentenceContextRetriever(sentences),
        "`HybridRetriever`": hybrid,
        "`PreciseRetriever`": PreciseRetriever.from_index(index, reranker=reranker),
    }
    lines += [Line("documents", code, retrieved(retriever)) for code, retriever in whole.items()]
    lines.append(Line("documents", "`SelfFeedbackQueryEngine` on `HybridRetriever`", answered(hybrid)))
    return App("LlamaIndex", lambda query, k: best(stock, k)(query), lines)


def _pieces(node: Any, texts: dict[str, str]) -> list[Piece]:
    """A node as it is sent; its sentences, if another component has changed its text."""
    doc_id, start, end = node.ref_doc_id, node.start_char_idx, node.end_char_idx
    if texts[doc_id][start:end] == node.text:
        return [Piece(doc_id, start, end, node.text)]
    spans = load_sentence_splitter().split(node.text)
    sentences = [sentence for span in spans if (sentence := node.text[span.start : span.end].strip())]
    places = [(texts[doc_id].find(sentence), sentence) for sentence in sentences]
    return [Piece(doc_id, place, place + len(text) if place >= 0 else place, text) for place, text in places]
