"""The few sentences that answer, of the chunks of any retriever; all else is in `llamaindex_precise`."""

from llamaindex_precise import EvidencePostprocessor

__all__ = ["EvidencePostprocessor"]
