"""Views of what the library did, for the terminal and the browser."""

from precise_rag.viz.segmentation_page import segmentation_page
from precise_rag.viz.segmentation_terminal import segmentation_lines

__all__ = ["segmentation_lines", "segmentation_page"]
