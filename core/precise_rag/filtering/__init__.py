"""What to leave out of the context, and why."""

from precise_rag.filtering.redundancy import RedundancyFilter

__all__ = ["RedundancyFilter"]
