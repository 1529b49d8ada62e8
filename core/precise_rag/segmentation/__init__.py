"""Segmenters: from documents to chunks."""

from precise_rag.segmentation.greedy import GreedySegmenter
from precise_rag.segmentation.options import Segmentation, SegmenterOptions
from precise_rag.segmentation.segmenter import Segmenter

__all__ = ["GreedySegmenter", "Segmentation", "Segmenter", "SegmenterOptions"]
