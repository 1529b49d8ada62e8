"""Segmenters: from documents to chunks."""

from precise_rag.segmentation.foreign_options import check_foreign_options
from precise_rag.segmentation.greedy import GreedySegmenter
from precise_rag.segmentation.segmenter import Segmentation, Segmenter, SegmenterOptions

__all__ = ["GreedySegmenter", "Segmentation", "Segmenter", "SegmenterOptions", "check_foreign_options"]
