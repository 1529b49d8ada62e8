"""Measuring retrieval: evidence at token budgets, rankings, and what differences are worth."""

from precise_rag.evaluation.datasets import Dataset as Dataset
from precise_rag.evaluation.datasets import Evidence as Evidence
from precise_rag.evaluation.datasets import Question as Question
from precise_rag.evaluation.datasets import load_dataset as load_dataset
from precise_rag.evaluation.datasets import load_development_set as load_development_set
from precise_rag.evaluation.measures.answers import METRICS as METRICS
from precise_rag.evaluation.measures.answers import corpus_bleu as corpus_bleu
from precise_rag.evaluation.measures.answers import score_answers as score_answers
from precise_rag.evaluation.measures.evidence import BUDGETS as BUDGETS
from precise_rag.evaluation.measures.evidence import EvidenceScores as EvidenceScores
from precise_rag.evaluation.measures.evidence import score_evidence as score_evidence
from precise_rag.evaluation.measures.evidence import useful_ratio as useful_ratio
from precise_rag.evaluation.measures.positions import Positions as Positions
from precise_rag.evaluation.measures.ranking import RankedPassages as RankedPassages
from precise_rag.evaluation.measures.ranking import ranking_scores as ranking_scores
from precise_rag.evaluation.measures.statistics import Comparison as Comparison
from precise_rag.evaluation.measures.statistics import Interval as Interval
from precise_rag.evaluation.measures.statistics import bootstrap_interval as bootstrap_interval
from precise_rag.evaluation.measures.statistics import compare_over_sets as compare_over_sets
from precise_rag.evaluation.measures.statistics import compare_paired as compare_paired
