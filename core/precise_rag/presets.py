"""Presets: the index and the stages that `PreciseRAG` takes where it is told nothing else.

"precise" is the default. The others follow a paper; what differs from it is named.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from precise_rag.candidate_filters import DynamicThreshold, RedundancyFilter, RelevanceFilter
from precise_rag.checks import check_choice
from precise_rag.evidence import EvidenceGrower
from precise_rag.excerpts import Order
from precise_rag.feedback import FeedbackController
from precise_rag.index import DenseIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.prompts import JudgeStyle
from precise_rag.protocols import Encoder, Neighbours
from precise_rag.rerank import LogitReranker, load_reranker
from precise_rag.rewriting import QueryRewriter
from precise_rag.segmentation import GreedySegmenter, Segmenter
from precise_rag.selection import GradientSelector, ProbabilitySelector
from precise_rag.types import ScoreScale

PresetName = Literal["precise", "sage", "paretorag", "chunkrag", "recursive"]
Make = Callable[[Any], Any]
"""Makes a stage for what is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """An index and the stages that follow it.

    index: builds the index from documents, an encoder and options of the index.
    index_options: makes the options from the encoder.
    rewriter … feedback: make the stages of `PreciseRAG`; None leaves one out.
    score_scale: the scale of a cross-encoder's scores that is given by its name; None for its own.
    calibrated: whether a reranker that you bring gives only the order (see `calibrated`).
    reranks_last: whether the reranker scores what the filters leave, and not what is found.
    n_candidates, order, judge_prompt: defaults of `PreciseRAG`.
    """

    index: Callable[..., Any] = HybridIndex.build
    index_options: Callable[[Encoder], Mapping[str, Any]] = lambda encoder: {}
    rewriter: Make | None = None
    reranker: Make | None = None
    redundancy: Make | None = None
    relevance: Make | None = None
    evidence: Make | None = None
    selector: Make | None = None
    feedback: Make | None = None
    score_scale: ScoreScale | None = None
    calibrated: bool = False
    reranks_last: bool = False
    n_candidates: int = 50
    order: Order = "document"
    judge_prompt: JudgeStyle = "json"


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "precise": Preset(
            reranker=lambda index: load_reranker("default"),
            redundancy=lambda index: RedundancyFilter(),
            evidence=lambda index: EvidenceGrower(index if isinstance(index, Neighbours) else None),
            selector=lambda index: ProbabilitySelector(assume_ratio=True),
            feedback=lambda index: FeedbackController(),
            calibrated=True,
        ),
        # SAGE: segments cut wherever the score is under 0.55, within pieces of 400 tokens (section IV-E); 15
        # are scored, as in Figs. 8 and 9, and selected on logits; feedback moves min_k alone. Differs: the
        # encoder of the segments' head and the default reranker are ours, with logits over chance; a
        # cross-encoder that is given by its name has its own raw logits.
        "sage": Preset(
            index=DenseIndex.build,
            index_options=lambda encoder: {
                "chunks": Segmenter.from_pretrained(
                    "sage", threshold=0.55, coarse_tokens=400, max_tokens=400, target_tokens=1, min_tokens=0
                )
            },
            reranker=lambda index: LogitReranker(load_reranker("default")),
            selector=lambda index: GradientSelector(min_k=7, ratio=0.3, assume_ratio=True, moves="min_k"),
            feedback=lambda index: FeedbackController(accept=9, max_rounds=3),
            score_scale="logit",
            n_candidates=15,
            judge_prompt="sage",
        ),
        # ParetoRAG: the ten best sentences (table 1), in the order of their scores.
        "paretorag": Preset(
            index=SentenceContextIndex.build,
            index_options=lambda encoder: {"alpha": 0.8, "context": "encode", "similarity": "dot"},
            n_candidates=10,
            order="score",
        ),
        # ChunkRAG: what the rewritten question finds, by its similarity to it; repetitions, then irrelevant
        # chunks are dropped, and Cohere orders the rest. Differs: the vector of a chunk is the mean of its
        # sentences' vectors; a batch of chunks is scored in one call; under 0.1 no chunk is relevant; without
        # a key for Cohere the packaged reranker is used.
        "chunkrag": Preset(
            index_options=lambda encoder: {
                "passages": GreedySegmenter(encoder),
                "surroundings": None,
                "alpha": 0.0,
                "dense_weight": 0.5,
                "adaptive": False,
                "returns": "passage",
            },
            rewriter=lambda index: QueryRewriter(original=False),
            reranker=lambda index: load_reranker(
                "cohere:rerank-english-v3.0" if os.environ.get("CO_API_KEY") else "packaged"
            ),
            redundancy=lambda index: RedundancyFilter(
                similarity_threshold=0.9, encoder=getattr(index, "encoder", None)
            ),
            relevance=lambda index: RelevanceFilter(
                threshold=DynamicThreshold(min_score=0.1, ceiling=1.0, cap=None)
            ),
            reranks_last=True,
            n_candidates=15,
            order="score",
        ),
        # Recursive retrieval: sentences that share a word with the question, ranked by meaning.
        "recursive": Preset(index=WordSentenceIndex.build, n_candidates=10, order="score"),
    }
)


def load_preset(name: str) -> Preset:
    """Return a preset by name. Raises InputError for an unknown name."""
    check_choice("preset", name, get_args(PresetName))
    return PRESETS[name]
