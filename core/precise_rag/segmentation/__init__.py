"""Documents to chunks: learned boundaries, and cuts that respect the limits."""

from precise_rag.segmentation.greedy import GreedySegmenter
from precise_rag.segmentation.segmenter import Segmentation, Segmenter, SegmenterOptions

__all__ = ["GreedySegmenter", "Segmentation", "Segmenter", "SegmenterOptions"]
