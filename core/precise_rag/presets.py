"""Presets of `PreciseRAG` that follow a paper."""

from collections.abc import Iterable
from typing import Any

from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.feedback import FeedbackController
from precise_rag.filtering import DynamicThreshold, RedundancyFilter, RelevanceFilter
from precise_rag.index import HybridIndex
from precise_rag.pipeline import PreciseRAG
from precise_rag.protocols import Encoder
from precise_rag.rerank import load_reranker
from precise_rag.rewriting import QueryRewriter
from precise_rag.segmentation import GreedySegmenter
from precise_rag.selection import GradientSelector
from precise_rag.types import Document


def chunkrag(
    documents: Iterable[Document],
    llm: Any,
    *,
    encoder: Encoder | str = DEFAULT_ENCODER,
    reranker: Any = "packaged",
    n_candidates: int = 15,
    show_progress: bool = False,
    **options: Any,
) -> PreciseRAG:
    """Build the pipeline of the ChunkRAG paper over `documents`.

    documents: the texts to index.
    llm: any model that `load_llm` accepts; it rewrites the question, scores the chunks and answers.
    encoder: for chunking, search and redundancy; a name, a path or an Encoder.
    reranker: anything `load_reranker` accepts; the paper's is "cohere:rerank-english-v3.0" (needs a key).
    n_candidates: chunks to retrieve.
    show_progress: show progress bars while indexing.
    options: further arguments of `PreciseRAG`, which replace those set here.

    The stages: greedy chunks of at most 500 characters; search for the question and its rewrite, with
    dense and BM25 scores weighted 0.5/0.5; reranking; chunks with a cosine above 0.9 dropped; relevance
    scores by the model with the paper's threshold and a floor of 0.1, under which nothing is relevant;
    one answer from all that is left.
    Source: ChunkRAG, section 3. Differs: the vector of a chunk is the mean of its sentences' vectors; the
    original question is searched, too; a batch of chunks is scored in one call.
    """
    encoder = load_encoder(encoder)
    index = HybridIndex.build(
        documents,
        encoder,
        passages=GreedySegmenter(encoder),
        surroundings=None,
        alpha=0.0,
        dense_weight=0.5,
        adaptive=False,
        returns="passage",
        show_progress=show_progress,
    )
    preset: dict[str, Any] = {
        "rewriter": QueryRewriter(llm),
        "reranker": load_reranker(reranker),
        "redundancy": RedundancyFilter(threshold=0.9, encoder=encoder),
        "relevance": RelevanceFilter(llm, threshold=DynamicThreshold(floor=0.1, ceiling=1.0)),
        "selector": GradientSelector(min_k=2 * n_candidates),
        "controller": FeedbackController(max_rounds=0),
        "n_candidates": n_candidates,
    }
    return PreciseRAG(index, llm=llm, **{**preset, **options})
