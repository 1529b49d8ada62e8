"""Evidence: found sentences grow to the sentences around them that probably belong to it."""

from precise_rag.evidence.extractor import EvidenceExtractor as EvidenceExtractor
from precise_rag.evidence.extractor import EvidenceSpan as EvidenceSpan
from precise_rag.evidence.extractor import Extraction as Extraction
from precise_rag.evidence.grower import EvidenceGrower as EvidenceGrower
from precise_rag.evidence.model import EvidenceModel as EvidenceModel
from precise_rag.evidence.texts import FoundTexts as FoundTexts
