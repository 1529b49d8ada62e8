"""Evidence: found sentences grow to the sentences around them that probably belong to it."""

from precise_rag.evidence.extractor import N_FOUND, EvidenceExtractor, Extraction
from precise_rag.evidence.grower import EvidenceGrower
from precise_rag.evidence.model import EvidenceModel
from precise_rag.evidence.pruning import Pruned, prune
from precise_rag.evidence.texts import FoundTexts
from precise_rag.evidence.tool_results import ToolResultPruner

__all__ = [
    "N_FOUND",
    "EvidenceExtractor",
    "EvidenceGrower",
    "EvidenceModel",
    "Extraction",
    "FoundTexts",
    "Pruned",
    "ToolResultPruner",
    "prune",
]
