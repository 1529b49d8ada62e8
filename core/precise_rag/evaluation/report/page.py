"""Results of an evaluation as one HTML page."""

import os
from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from precise_rag.evaluation.datasets import Evidence, Question
from precise_rag.evaluation.report.tables import (
    answer_cells,
    answer_columns,
    cell,
    columns,
    cost_cells,
    cost_columns,
)
from precise_rag.evaluation.runs.evaluate import Outcome
from precise_rag.evaluation.runs.measurer import Row
from precise_rag.evaluation.runs.run import Piece, Run
from precise_rag.viz.charts import ScoredRank, chart_legend, line_chart, score_curve
from precise_rag.viz.page import Html, folded, html_page, shorten, soft, table, two_sizes

_N_CURVES = 6
_N_EXAMPLES = 5
_SHOWN_PIECES = 6
_MOST_BARS = 40
_SHOWN_QUESTIONS = 50


def render_report(
    outcomes: Sequence[Outcome], circumstances: dict[str, Any], folder: Path | None = None
) -> str:
    """Return the page: recall against tokens, tables, score curves, and what was found for each question.

    outcomes: of `evaluate`. circumstances: of the function of that name.
    folder: where the page will be, to link the pages of traces from there; default: they are not linked.
    """
    body = "".join(_dataset(outcome, folder) for outcome in outcomes)
    made = ", ".join(
        f"{key}: {value if not isinstance(value, dict) else ' '.join(f'{k} {v}' for k, v in value.items())}"
        for key, value in circumstances.items()
    )
    return html_page("Retrieval compared", soft(made), body)


def _dataset(outcome: Outcome, folder: Path | None) -> str:
    n_questions = len(outcome.measurer.dataset.questions)
    facts = f"{len(outcome.dataset.documents):,} documents, {n_questions:,} questions"
    failed = "".join(
        f'<p class="down">{escape(name)} could not run: {escape(why)}</p>'
        for name, why in outcome.failed.items()
    )
    has_evidence = bool(outcome.measurer.dataset.questions[0].evidence)
    return (
        f"<section><h2>{escape(outcome.dataset.name)}</h2><p>{facts}.</p>{failed}"
        f"{_recall_chart(outcome) if has_evidence else ''}{_tables(outcome)}{_answers(outcome)}"
        f"{_questions(outcome, folder) if has_evidence else ''}{_curves(outcome)}</section>"
    )


def _recall_chart(outcome: Outcome) -> str:
    budgets = outcome.measurer.budgets
    series = {
        row.name: [(float(b), 100 * row.means[f"recall@{b}"].mean) for b in budgets] for row in outcome.rows
    }
    stock = [run.settings.name for run in outcome.runs if run.settings.is_stock]
    muted = stock if len(stock) < len(series) else ()
    draw = partial(line_chart, series, x_label="tokens sent", y_label="evidence that arrives", muted=muted)
    return two_sizes(draw(), draw(width=340, height=260, has_names=False) + chart_legend(series, muted))


def _tables(outcome: Outcome) -> str:
    names = columns(outcome.rows)
    shaded = [number for number, row in enumerate(outcome.rows) if row.name == outcome.baseline]
    rows = [(row.name, *(_quality(name, row) for name in names)) for row in outcome.rows]
    note = (
        "Shares in percent, ± half of the 95 % bootstrap interval (questions about one document are drawn "
        f"together). + and -: differs from {outcome.baseline} in a paired test, p < 0.05."
    )
    quality = table(_numbers("pipeline", names), rows, shaded=shaded) + soft(note) if names else ""
    first, *others = cost_columns(outcome.rows)
    costs = table(
        _numbers(first, others),
        [cost_cells(row, outcome.rows) for row in outcome.rows],
        shaded=shaded,
    )
    kept = (
        "Everything the pipeline keeps, without a budget. ms: retrieval for one question, its vector cached; "
        "build: splitting and indexing, with cached vectors where there are some; memory: growth of the "
        "process."
    )
    return f"{quality}{costs}{soft(kept)}"


def _quality(name: str, row: Row) -> Html:
    text = cell(name, row.means[name], row.against_baseline.get(name)).strip()
    css = {"+": "up", "-": "down"}.get(text[-1], "")
    return Html(f'<span class="{css}">{text}</span>' if css else text)


def _numbers(first: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """The columns of a table of numbers with names in its first column."""
    return [(first, "name"), *((name, "num") for name in names)]


def _answers(outcome: Outcome) -> str:
    if not outcome.answers:
        return ""
    first, *names = answer_columns(outcome.answers[0])
    body = table(_numbers(first, names), map(answer_cells, outcome.answers))
    return f"<h3>Answers by {escape(outcome.answers[0].model)}</h3>{body}"


def _curves(outcome: Outcome) -> str:
    run = next((r for r in reversed(outcome.runs) if r.settings.select is not None), outcome.runs[-1])
    questions = outcome.measurer.dataset.questions
    step = max(1, len(questions) // _N_CURVES)
    shown = "".join(_curve(question, run) for question in questions[::step][:_N_CURVES])
    legend = (
        "One bar per candidate, by rank. Green: kept; grey: dropped; orange: holds evidence (pale: dropped); "
        "dashed: after the last kept."
    )
    return (
        f'<h3>Score curves and cuts: {escape(run.settings.name)}</h3><div class="small">{shown}</div>'
        f"{soft(legend)}"
    )


def _curve(question: Question, run: Run) -> str:
    ranks = [
        ScoredRank(rank, piece.score, piece.kept, "", any(_overlap(piece, e) for e in question.evidence))
        for rank, piece in enumerate(run.pieces[question.id][:_MOST_BARS], start=1)
    ]
    return score_curve(ranks, question.text, small=True)


def _questions(outcome: Outcome, folder: Path | None) -> str:
    """What each pipeline found for each question, then the questions lost and won by most.

    Recall is compared at the budget where most questions differ between the last pipeline and the baseline.
    """
    last = outcome.measured[-1]
    baseline = next(m for m in outcome.measured if m.name == outcome.baseline)
    gains = {b: last.values[f"recall@{b}"] - baseline.values[f"recall@{b}"] for b in outcome.measurer.budgets}
    budget = max(gains, key=lambda b: (int((gains[b] != 0).sum()), -b))
    compared = "" if last is baseline else _compared(outcome, budget, gains[budget])
    return _all_questions(outcome, budget, folder) + compared


def _all_questions(outcome: Outcome, budget: int, folder: Path | None) -> str:
    """The recall of every pipeline for every question, those first that the last pipeline fails by most."""
    recalls = np.array([100 * measured.values[f"recall@{budget}"] for measured in outcome.measured])
    order = np.lexsort((-recalls.max(0), recalls[-1])).tolist()
    rows = [
        (
            shorten(question.text, 120),
            *(
                _linked(run, question, f"{recall:.0f}", folder)
                for run, recall in zip(outcome.runs, recalls[:, row], strict=True)
            ),
        )
        for row, question in ((row, outcome.measurer.dataset.questions[row]) for row in order)
    ]
    columns = [("question", "text"), *_numbers("", [measured.name for measured in outcome.measured])[1:]]
    note = (
        f"Evidence that arrives within {budget:,} tokens, in percent. First come the questions that "
        f"“{outcome.measured[-1].name}” fails."
    )
    if folder is not None:
        note += " A number leads to the trace of its pipeline."
    rest = rows[_SHOWN_QUESTIONS:]
    return (
        f"<h3>What each pipeline found</h3>{soft(note)}{table(columns, rows[:_SHOWN_QUESTIONS])}"
        f"{folded(f'{len(rest):,} more questions', table(columns, rest)) if rest else ''}"
    )


def _linked(run: Run, question: Question, text: str, folder: Path | None) -> str:
    page = None if folder is None else run.trace_page(question.id)
    if page is None or folder is None:
        return text
    address = quote(os.path.relpath(page, folder).replace(os.sep, "/"))
    about = f"{text} percent: trace of {run.settings.name}"
    return Html(f'<a href="{escape(address)}" aria-label="{escape(about)}">{escape(text)}</a>')


def _compared(outcome: Outcome, budget: int, gain: npt.NDArray[np.float64]) -> str:
    """The questions that the last pipeline loses and wins by most against the baseline."""
    names = outcome.baseline, outcome.measured[-1].name
    runs = {run.settings.name: run for run in outcome.runs}
    parts = [f"<h3>{escape(names[1])} against {escape(names[0])} at {budget:,} tokens</h3>"]
    lost = [row for row in np.argsort(gain, kind="stable").tolist() if gain[row] < 0]
    won = [row for row in np.argsort(-gain, kind="stable").tolist() if gain[row] > 0]
    for title, rows in (("Lost", lost), ("Won", won)):
        parts.append(f"<h4>{title}: {len(rows)} of {len(gain)} questions</h4>")
        for row in rows[:_N_EXAMPLES]:
            question = outcome.measurer.dataset.questions[row]
            sides = "".join(_side(outcome, runs[name], question) for name in names)
            accepted = escape("; ".join(question.answers[:3]) or "(no answer given)")
            parts.append(
                folded(
                    Html(f"{escape(question.text)} <b>{100 * gain[row]:+.0f} points</b>"),
                    f'<p>Accepted: {accepted}</p><div class="sides">{sides}</div>',
                )
            )
    return "".join(parts)


def _side(outcome: Outcome, run: Run, question: Question) -> str:
    kept = [piece for piece in run.pieces[question.id] if piece.kept][:_SHOWN_PIECES]
    documents = outcome.measurer.positions.documents
    pieces = "".join(
        f'<div class="panel">{_marked(documents[p.doc_id].text, p, question.evidence)}</div>' for p in kept
    )
    return f"<div><b>{escape(run.settings.name)}</b>{pieces or '<p>nothing kept</p>'}</div>"


def _marked(text: str, piece: Piece, evidence: Sequence[Evidence]) -> str:
    """The text of a piece as markup, with its evidence marked."""
    parts, at = [], piece.start
    for place in sorted(e for e in evidence if _overlap(piece, e)):
        start, end = max(at, place.start), min(piece.end, place.end)
        if start < end:
            parts += [escape(text[at:start]), f"<mark>{escape(text[start:end])}</mark>"]
            at = end
    return "".join([*parts, escape(text[at : piece.end])])


def _overlap(piece: Piece, place: Evidence) -> bool:
    return piece.doc_id == place.doc_id and piece.start < place.end and place.start < piece.end
