"""Compare pipelines over datasets: run, measure, tabulate; plain values for JSON."""

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import precise_rag
from precise_rag.encoders.cache import CachedEncoder
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.evaluation.datasets import Dataset
from precise_rag.evaluation.measures.evidence import BUDGETS
from precise_rag.evaluation.measures.measurer import Measured, Measurer, Row
from precise_rag.evaluation.measures.statistics import Interval
from precise_rag.evaluation.peers.libraries import LIBRARIES, installed_version
from precise_rag.evaluation.runs.pipelines import Built, PipelineSettings, Plan
from precise_rag.evaluation.runs.run import Run, run_pipeline
from precise_rag.protocols import LLM, Encoder


class AnswerRow(NamedTuple):
    """How well a pipeline's context was answered from: means of answer metrics, tokens and money.

    Tokens and cost are for one question; cost and cost_efficiency (accuracy or F1, else the first metric,
    for a dollar: SAGE eq. 2) are None without a price.
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
    """All about one dataset: its runs, their measures for every question, and the table of means.

    failed: pipelines that could not run, with the reason. answers: how well a language model
    answered from what each pipeline kept, if one was asked.
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
        """Plain values: means with their bounds, comparisons with the baseline, facts."""
        return {
            "dataset": self.dataset.name,
            "documents": len(self.dataset.documents),
            "questions": len(self.measurer.dataset.questions),
            "without_evidence": self.measurer.dataset.without_evidence,
            "evidence_not_found": len(self.dataset.unplaced),
            "tokens_counted_by": self.measurer.corpus.tokenizer,
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
    show_progress: bool = False,
) -> Iterator[Outcome]:
    """The outcome of each dataset, one after the other; runs are kept in `folder` and taken up again.

    llm: for the pipelines that ask a language model while they retrieve. A pipeline that cannot run (say,
    for a missing extra, or without a language model) is left out and its reason kept. Raises
    InputError if the baseline is one of them, or a dataset has no questions.
    """
    for dataset in datasets:
        measurer = Measurer(dataset, budgets)
        if not measurer.dataset.questions:
            raise InputError(f"{dataset.name}: there are no questions")
        if isinstance(encoder, CachedEncoder):  # else the first pipeline would pay for all questions
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


def circumstances(seed: int) -> dict[str, Any]:
    """When, with what and on what: belongs to every result."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "precise-rag": precise_rag.__version__,
        "python": platform.python_version(),
        "libraries": {name: installed_version(name) for name in LIBRARIES if installed_version(name)},
        "machine": f"{platform.machine()}, {os.cpu_count()} CPU cores",
        "seed": seed,
    }


def _without_blanks(settings: PipelineSettings) -> dict[str, Any]:
    return {key: value for key, value in asdict(settings).items() if value is not None and key != "name"}


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(value) for value in np.round(values, 4)]
