"""Rerankers: better scores for a list of candidates."""

from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.cohere import CohereReranker
from precise_rag.rerank.cross_encoder import CrossEncoderReranker
from precise_rag.rerank.framework import FrameworkReranker
from precise_rag.rerank.levels import LevelledReranker, LogitReranker, calibrated
from precise_rag.rerank.load import load_reranker
from precise_rag.rerank.packaged import PackagedReranker
from precise_rag.rerank.ranked_candidates import rerank, rerank_best

__all__ = [
    "CascadeReranker",
    "CohereReranker",
    "CrossEncoderReranker",
    "FrameworkReranker",
    "LevelledReranker",
    "LogitReranker",
    "PackagedReranker",
    "calibrated",
    "load_reranker",
    "rerank",
    "rerank_best",
]
