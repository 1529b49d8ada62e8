"""The comparison of pipelines over datasets: runs, measures, a table, and plain values for JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precise_rag.encoders.cache import CachedEncoder
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.evaluation.datasets import Dataset
from precise_rag.evaluation.measures.evidence import BUDGETS
from precise_rag.evaluation.measures.statistics import Interval
from precise_rag.evaluation.runs.measurer import Measured, Measurer, Row
from precise_rag.evaluation.runs.pipeline import Built
from precise_rag.evaluation.runs.plan import PipelineSettings, Plan
from precise_rag.evaluation.runs.run import Run, run_pipeline
from precise_rag.protocols import LLM, Encoder


class AnswerRow(NamedTuple):
    """The answers of one pipeline: means of answer metrics, tokens and cost.

    input_tokens, output_tokens: per question.
    quality_per_1000_tokens: accuracy or F1, otherwise the first metric, per 1,000 input tokens.
    cost: dollars per question; None if the model has no price.
    cost_efficiency: the same quality per dollar (SAGE, eq. 2); None if the model has no price.
    """

    name: str
    model: str
    questions: int
    means: dict[str, Interval]
    input_tokens: float
    output_tokens: float
    quality_per_1000_tokens: float
    cost: float | None
    cost_efficiency: float | None


@dataclass(frozen=True)
class Outcome:
    """The results of one dataset.

    dataset, baseline: as given.
    measurer: of the dataset; its `dataset` holds the questions that were measured.
    runs, measured, rows: of each pipeline that ran, in one order: its run, its measures for every
        question, and its row of the table.
    failed: name of each pipeline that could not run to the reason.
    answers: one row per pipeline after `answer_questions`, otherwise empty.
    """

    dataset: Dataset
    measurer: Measurer
    baseline: str
    runs: tuple[Run, ...]
    measured: tuple[Measured, ...]
    rows: tuple[Row, ...]
    failed: dict[str, str] = field(default_factory=dict)
    answers: tuple[AnswerRow, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the means with their bounds, the comparisons and the facts as plain values."""
        return {
            "dataset": self.dataset.name,
            "documents": len(self.dataset.documents),
            "questions": len(self.measurer.dataset.questions),
            "without_evidence": self.measurer.dataset.without_evidence,
            "evidence_not_found": len(self.dataset.unplaced),
            "tokens_counted_by": self.measurer.positions.tokenizer,
            "baseline": self.baseline,
            "failed": self.failed,
            "pipelines": [
                {
                    "name": row.name,
                    "settings": _without_blanks(run.settings),
                    "facts": row.facts,
                    "recall_per_1000_tokens": row.recall_per_1000_tokens,
                    "means": {name: _rounded(interval) for name, interval in row.means.items()},
                    "against_baseline": {
                        name: {**c._asdict(), "difference": _rounded(c.difference)}
                        for name, c in row.against_baseline.items()
                    },
                }
                for run, row in zip(self.runs, self.rows, strict=True)
            ],
            "answers": [
                {**row._asdict(), "means": {name: _rounded(value) for name, value in row.means.items()}}
                for row in self.answers
            ],
        }


def evaluate(
    plan: Plan,
    datasets: Sequence[Dataset],
    encoder: Encoder,
    folder: str | Path,
    *,
    budgets: Sequence[int] = BUDGETS,
    seed: int = 0,
    llm: LLM | None = None,
    traces: bool = False,
    show_progress: bool = False,
) -> Iterator[Outcome]:
    """Run and measure the pipelines of a plan over each dataset, and yield its outcome.

    plan: the pipelines and the baseline.
    datasets: documents and questions.
    encoder: the encoder of every pipeline.
    folder: of the run files; runs found there are continued.
    budgets: tokens.
    seed: of the intervals and tests.
    llm: the language model for pipelines that ask one.
    traces: keep pages of traces, see `run_pipeline`; default: False.

    A pipeline that cannot run, for example because an extra is missing, is named in `Outcome.failed`.
    Raises InputError if that is the baseline, or a dataset has no questions.
    """
    for dataset in datasets:
        measurer = Measurer(dataset, budgets)
        if not measurer.dataset.questions:
            raise InputError(f"dataset {dataset.name!r} has no questions; add at least one")
        if isinstance(encoder, CachedEncoder):  # otherwise the first pipeline's times would include it
            encoder.encode_queries([question.text for question in measurer.dataset.questions])
        runs, failed, indexes = [], {}, dict[str, Built]()
        for settings in plan.pipelines:
            try:
                runs.append(
                    run_pipeline(
                        settings,
                        measurer.dataset,
                        encoder,
                        folder,
                        llm=llm,
                        indexes=indexes,
                        traces=traces,
                        show_progress=show_progress,
                    )
                )
            except (PreciseRagError, ImportError) as error:
                failed[settings.name] = str(error)
        if plan.baseline in failed:
            raise InputError(f"the baseline {plan.baseline!r} cannot run: {failed[plan.baseline]}")
        measured = [measurer.measure(run) for run in runs]
        rows = measurer.table(measured, plan.baseline, seed)
        yield Outcome(dataset, measurer, plan.baseline, tuple(runs), tuple(measured), tuple(rows), failed)


def _without_blanks(settings: PipelineSettings) -> dict[str, Any]:
    return {key: value for key, value in asdict(settings).items() if value is not None and key != "name"}


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(value) for value in np.round(values, 4)]
