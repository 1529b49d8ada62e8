"""Selection: how many of the best candidates to keep."""

from precise_rag.selection.gradient import DEFAULT_SELECTOR, GradientSelector, gradient_cut
from precise_rag.selection.probability import ProbabilitySelector
from precise_rag.selection.ratios import ratio_scores

__all__ = ["DEFAULT_SELECTOR", "GradientSelector", "ProbabilitySelector", "gradient_cut", "ratio_scores"]
