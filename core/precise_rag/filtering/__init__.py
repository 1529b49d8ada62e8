"""Filters that drop redundant and irrelevant candidates."""

from precise_rag.filtering.redundancy import RedundancyFilter
from precise_rag.filtering.relevance import RelevanceFilter, RelevanceSettings
from precise_rag.filtering.relevance_parsing import Relevance
from precise_rag.filtering.threshold import DynamicThreshold

__all__ = [
    "DynamicThreshold",
    "RedundancyFilter",
    "Relevance",
    "RelevanceFilter",
    "RelevanceSettings",
]
