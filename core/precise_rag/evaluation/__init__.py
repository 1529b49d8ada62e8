"""Evaluation of retrieval and answers: datasets, measures, runs of pipelines, and reports.

datasets.py       documents, and questions with evidence
questions.py      questions written by a language model
own_questions.py  questions that documents ask by their headings
adapting.py       fitting a reranker to a collection by questions
units.py          the unit of text that any splitter makes, and plain search over units
splitters.py      splitters by name
measures/     evidence at token budgets, rankings, answers, statistics
runs/         pipelines and their runs over a dataset
report/       tables and an HTML page
"""

from precise_rag.evaluation.adapting import Adapted, adapt
from precise_rag.evaluation.datasets import (
    Dataset,
    Evidence,
    Question,
    load_dataset,
    load_development_set,
    read_questions,
)
from precise_rag.evaluation.measures.answers import METRICS, corpus_bleu, score_answers
from precise_rag.evaluation.measures.evidence import BUDGETS, EvidenceScores, score_evidence, useful_ratio
from precise_rag.evaluation.measures.positions import Positions
from precise_rag.evaluation.measures.ranking import RankedPassages, ranking_scores
from precise_rag.evaluation.measures.statistics import (
    Comparison,
    Interval,
    bootstrap_interval,
    compare_over_sets,
    compare_paired,
)
from precise_rag.evaluation.own_questions import OwnQuestions, own_questions
from precise_rag.evaluation.report.page import render_report
from precise_rag.evaluation.report.tables import SIGNIFICANT, answer_cells, answer_columns, format_markdown
from precise_rag.evaluation.runs.answering import answer_questions
from precise_rag.evaluation.runs.environment import circumstances, peak_mb, resident_mb
from precise_rag.evaluation.runs.evaluate import Outcome, evaluate
from precise_rag.evaluation.runs.measurer import Measured, Measurer, Row
from precise_rag.evaluation.runs.pipeline import Pipeline
from precise_rag.evaluation.runs.plan import PipelineSettings, Plan, load_plan
from precise_rag.evaluation.runs.run import Piece, Run
from precise_rag.evaluation.splitters import load_splitter
from precise_rag.evaluation.units import UnitIndex

__all__ = [
    "BUDGETS",
    "METRICS",
    "SIGNIFICANT",
    "Adapted",
    "Comparison",
    "Dataset",
    "Evidence",
    "EvidenceScores",
    "Interval",
    "Measured",
    "Measurer",
    "Outcome",
    "OwnQuestions",
    "Piece",
    "Pipeline",
    "PipelineSettings",
    "Plan",
    "Positions",
    "Question",
    "RankedPassages",
    "Row",
    "Run",
    "UnitIndex",
    "adapt",
    "answer_cells",
    "answer_columns",
    "answer_questions",
    "bootstrap_interval",
    "circumstances",
    "compare_over_sets",
    "compare_paired",
    "corpus_bleu",
    "evaluate",
    "format_markdown",
    "load_dataset",
    "load_development_set",
    "load_plan",
    "load_splitter",
    "own_questions",
    "peak_mb",
    "ranking_scores",
    "read_questions",
    "render_report",
    "resident_mb",
    "score_answers",
    "score_evidence",
    "useful_ratio",
]
