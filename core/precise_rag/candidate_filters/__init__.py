"""Filters that drop redundant and irrelevant candidates."""

from precise_rag.candidate_filters.redundancy import RedundancyFilter
from precise_rag.candidate_filters.relevance import RelevanceFilter, RelevanceSettings
from precise_rag.candidate_filters.threshold import DynamicThreshold

__all__ = ["DynamicThreshold", "RedundancyFilter", "RelevanceFilter", "RelevanceSettings"]
