"""Answers by the user's language model from the text that each pipeline kept, with their cost."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from precise_rag._progress import progress_bar
from precise_rag.errors import InputError
from precise_rag.evaluation.datasets import Question
from precise_rag.evaluation.measures.answers import accuracy, score_answers
from precise_rag.evaluation.measures.evidence import Values
from precise_rag.evaluation.measures.statistics import Interval, bootstrap_interval
from precise_rag.evaluation.runs.evaluate import AnswerRow, Outcome
from precise_rag.evaluation.runs.lines import append_line, read_lines
from precise_rag.evaluation.runs.measurer import Measurer
from precise_rag.evaluation.runs.plan import fingerprint
from precise_rag.evaluation.runs.run import Run
from precise_rag.feedback import FeedbackController
from precise_rag.pipeline import PreciseRAG
from precise_rag.prompts.answer import ANSWER_VERSION, chosen_option
from precise_rag.prompts.judge import JUDGE_VERSION
from precise_rag.protocols import LLM
from precise_rag.trace import Trace
from precise_rag.trace.prices import PriceTable, cost_efficiency
from precise_rag.types import Candidate, Selection

_AT_ONCE = 8
"""Questions that are asked at the same time."""


def answer_questions(
    outcome: Outcome,
    llm: LLM,
    *,
    metrics: Sequence[str] = ("EM", "F1", "ROUGE-L"),
    prices: str | Path | None = None,
    show_progress: bool = False,
) -> Outcome:
    """Answer every question that has accepted answers, and return the outcome with a row per pipeline.

    The context is the text that the pipeline kept: whole pieces in order, up to the largest budget. A
    pipeline with `feedback` lets the model judge its answer and ask for more or less context; all its
    calls count. If every question has options (`metadata["options"]` and `"label"`), the metric is
    accuracy. Answers are stored beside the run files and not asked for again.

    outcome: of `evaluate`.
    llm: the language model.
    metrics: names in `answers.METRICS`, for questions without options.
    prices: a price table to lay over the packaged one, see `PriceTable`.

    Raises InputError if no question has an answer to compare with.
    """
    questions = [q for q in outcome.measurer.dataset.questions if q.answers]
    if not questions:
        raise InputError(
            f'dataset {outcome.dataset.name!r}: no question has "answers" to compare the model\'s answer with'
        )
    by_options = all(_options(question) for question in questions)
    table = PriceTable.load(prices)
    rows = []
    for run in outcome.runs:
        records = _answers(run, questions, llm, outcome, show_progress)
        values = _accuracy(questions, records) if by_options else _similarity(questions, records, metrics)
        groups = [question.group for question in questions]
        rows.append(
            _row(
                run.settings.name,
                llm.name,
                {name: bootstrap_interval(array, groups=groups) for name, array in values.items()},
                records,
                table,
            )
        )
    return replace(outcome, answers=tuple(rows))


def _row(
    name: str,
    model: str,
    means: dict[str, Interval],
    records: Sequence[dict[str, Any]],
    table: PriceTable,
) -> AnswerRow:
    inputs, outputs = (sum(record[key] for record in records) for key in ("input_tokens", "output_tokens"))
    total = table.cost(model, inputs, outputs)
    cost = total / len(records) if total else None
    quality = next(
        (means[metric] for metric in ("accuracy", "F1") if metric in means), next(iter(means.values()))
    )
    return AnswerRow(
        name=name,
        model=model,
        questions=len(records),
        means=means,
        input_tokens=inputs / len(records),
        output_tokens=outputs / len(records),
        quality_per_1000_tokens=1000 * quality.mean * len(records) / max(inputs, 1),
        cost=cost,
        cost_efficiency=cost_efficiency(quality.mean, cost) if cost else None,
    )


def _answers(
    run: Run, questions: Sequence[Question], llm: LLM, outcome: Outcome, show_progress: bool
) -> list[dict[str, Any]]:
    """Return one record per question, in order; answers on disk are not asked for again."""
    key = fingerprint([llm.name, ANSWER_VERSION, JUDGE_VERSION, run.settings.feedback])
    path = run.path.with_name(f"{run.path.stem}-{key}.answers.jsonl")
    records = {record["id"]: record for record in read_lines(path)}
    todo = [question for question in questions if question.id not in records]
    rounds = {"max_rounds": 0, **(run.settings.feedback or {})}

    def ask(question: Question) -> dict[str, Any]:
        context = _RunContext(outcome.measurer, run, question)
        rag = PreciseRAG(
            None,
            llm,
            reranker=None,
            redundancy=None,
            evidence=None,
            selector=context,
            feedback=FeedbackController(**rounds),
            order="score",
            style="short",
        )
        trace = Trace(question.text)
        answer = rag.answer(
            question.text, options=_options(question), candidates=context.candidates, trace=trace
        )
        return {
            "id": question.id,
            "answer": answer.text,
            "rounds": len(answer.rounds),
            "input_tokens": sum(call.input_tokens for call in trace.calls),
            "output_tokens": sum(call.output_tokens for call in trace.calls),
        }

    with path.open("a", encoding="utf-8") as file:

        def keep(record: dict[str, Any]) -> None:
            append_line(file, record)
            records[record["id"]] = record

        _at_once(ask, todo, keep, run.settings.name, show_progress)
    return [records[question.id] for question in questions]


def _at_once(
    ask: Callable[[Question], dict[str, Any]],
    questions: Sequence[Question],
    keep: Callable[[dict[str, Any]], None],
    title: str,
    show_progress: bool,
) -> None:
    """Ask the questions in threads and pass each record to `keep`.

    After an error or an interrupt no further question is asked. Calls that are under way have to be
    paid for, so their records are kept before the exception is raised again.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting = {pool.submit(ask, question) for question in questions}
        answered = as_completed(tuple(waiting))
        try:
            for future in progress_bar(
                answered, shown=show_progress, desc=title, total=len(waiting), leave=False
            ):
                waiting.remove(future)
                keep(future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            for future in waiting:
                if not future.cancelled() and future.exception() is None:
                    keep(future.result())
            raise


class _RunContext:
    """The candidates of one question of a run, and their selector: that of the run, within its budget."""

    def __init__(self, measurer: Measurer, run: Run, question: Question) -> None:
        pieces = run.pieces[question.id]
        self.candidates = [
            Candidate(
                piece.doc_id,
                piece.start,
                piece.end,
                measurer.positions.documents[piece.doc_id].text[piece.start : piece.end],
                piece.score,
                run.scales[question.id],
                n_tokens,
            )
            for piece, n_tokens in zip(pieces, measurer.positions.count_tokens(pieces).tolist(), strict=True)
        ]
        whole = PreciseRAG(None, reranker=None, selector=run.settings.rag_options()["selector"])
        self._selector = whole.path.selector
        self._budget = measurer.budgets[-1]

    def select(self, candidates: Sequence[Candidate], *, query: str = "", step: int = 0) -> Selection:
        """Select what the run keeps, as many as fit into the budget."""
        selection = self._selector.select(candidates, query=query, step=step)
        read = np.cumsum([candidate.n_tokens for candidate in selection.kept])
        n_fitting = max(1, int(np.searchsorted(read, self._budget, side="right")))
        fitting = {candidate.id for candidate in selection.kept[:n_fitting]}
        return Selection.of(
            (d.candidate, d.kept and d.candidate.id in fitting, d.reason) for d in selection.decisions
        )


def _options(question: Question) -> tuple[str, ...]:
    return tuple(question.metadata.get("options") or ()) if "label" in question.metadata else ()


def _accuracy(questions: Sequence[Question], records: Sequence[dict[str, Any]]) -> dict[str, Values]:
    chosen = [chosen_option(r["answer"], _options(q)) for q, r in zip(questions, records, strict=True)]
    right = [accuracy(choice, [q.metadata["label"]]) for q, choice in zip(questions, chosen, strict=True)]
    return {"accuracy": np.array(right)}


def _similarity(
    questions: Sequence[Question], records: Sequence[dict[str, Any]], metrics: Sequence[str]
) -> dict[str, Values]:
    scores = score_answers([r["answer"] for r in records], [q.answers for q in questions], metrics)
    return {name: values.astype(np.float64) for name, values in scores.items()}
