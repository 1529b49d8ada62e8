"""What to leave out of the context, and why."""

from precise_rag.filtering.redundancy import RedundancyFilter
from precise_rag.filtering.relevance import RelevanceFilter, RelevanceSettings
from precise_rag.filtering.relevance_reply import Relevance
from precise_rag.filtering.threshold import DynamicThreshold, Threshold

__all__ = [
    "DynamicThreshold",
    "RedundancyFilter",
    "Relevance",
    "RelevanceFilter",
    "RelevanceSettings",
    "Threshold",
]
