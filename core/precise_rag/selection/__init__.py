"""Selection: how many of the best candidates to keep."""

from precise_rag.selection.gradient import DEFAULT_SELECTOR, GradientSelector, ratio_scores
from precise_rag.selection.probability import ProbabilitySelector

__all__ = ["DEFAULT_SELECTOR", "GradientSelector", "ProbabilitySelector", "ratio_scores"]
