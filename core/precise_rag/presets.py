"""ChunkRAG as a preset of `PreciseRAG`; each of its parts is usable alone."""

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
    """The pipeline of the ChunkRAG paper over `documents`.

    Greedy chunks of at most 500 characters; dense and BM25 scores at 0.5/0.5; the question and its
    rewrite both searched; `reranker` (the paper's is "cohere:rerank-english-v3.0", which needs a
    key); repetitions over 0.9 by vectors dropped; base score, reflection and critic by the model, a
    batch a call, with the paper's threshold and a floor of 0.1, so that it may find nothing relevant.
    All that is left is sent, and answered once. `options` go to PreciseRAG in place of these.
    Source: ChunkRAG, section 3. Differs: a chunk's vector is the mean of its sentences'.
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
