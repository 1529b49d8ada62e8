"""Selection: how many of the best candidates to keep."""

from precise_rag.selection.gradient import GradientSelector as GradientSelector
from precise_rag.selection.gradient import gradient_cut as gradient_cut
from precise_rag.selection.ratios import ratio_scores as ratio_scores
