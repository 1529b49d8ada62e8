from .extractor import N_FOUND as N_FOUND
from .extractor import EvidenceExtractor as EvidenceExtractor
from .grower import EvidenceGrower as EvidenceGrower
from .model import EvidenceModel as EvidenceModel
from .pruning import Pruned as Pruned
from .pruning import prune as prune
from .texts import FoundTexts as FoundTexts
from .tool_results import ToolResultPruner as ToolResultPruner
