"""Selection: how many of the best candidates to keep."""

from precise_rag.selection.gradient import DEFAULT_SELECTOR as DEFAULT_SELECTOR
from precise_rag.selection.gradient import GradientSelector as GradientSelector
from precise_rag.selection.gradient import gradient_cut as gradient_cut
from precise_rag.selection.keep_all import KeepAll as KeepAll
from precise_rag.selection.probability import ProbabilitySelector as ProbabilitySelector
from precise_rag.selection.ratios import ratio_scores as ratio_scores
