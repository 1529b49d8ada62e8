"""Evaluation of retrieval and answers: datasets, measures, runs of pipelines, and reports.

datasets.py   documents, and questions with evidence
questions.py  questions written by a language model
measures/     evidence at token budgets, rankings, answers, statistics
runs/         pipelines and their runs over a dataset
report/       tables and an HTML page
peers/        splitters and retrievers of other libraries
"""

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
from precise_rag.evaluation.peers.splitters import load_peer_splitter as load_peer_splitter
from precise_rag.evaluation.peers.units import UnitIndex as UnitIndex
from precise_rag.evaluation.report.page import render_report as render_report
from precise_rag.evaluation.report.tables import SIGNIFICANT as SIGNIFICANT
from precise_rag.evaluation.report.tables import answer_cells as answer_cells
from precise_rag.evaluation.report.tables import answer_columns as answer_columns
from precise_rag.evaluation.report.tables import format_markdown as format_markdown
from precise_rag.evaluation.runs.answering import answer_questions as answer_questions
from precise_rag.evaluation.runs.environment import circumstances as circumstances
from precise_rag.evaluation.runs.environment import peak_mb as peak_mb
from precise_rag.evaluation.runs.environment import resident_mb as resident_mb
from precise_rag.evaluation.runs.evaluate import Outcome as Outcome
from precise_rag.evaluation.runs.evaluate import evaluate as evaluate
from precise_rag.evaluation.runs.measurer import Measured as Measured
from precise_rag.evaluation.runs.measurer import Measurer as Measurer
from precise_rag.evaluation.runs.measurer import Row as Row
from precise_rag.evaluation.runs.pipeline import Pipeline as Pipeline
from precise_rag.evaluation.runs.plan import PipelineSettings as PipelineSettings
from precise_rag.evaluation.runs.plan import Plan as Plan
from precise_rag.evaluation.runs.plan import load_plan as load_plan
from precise_rag.evaluation.runs.run import Piece as Piece
from precise_rag.evaluation.runs.run import Run as Run
