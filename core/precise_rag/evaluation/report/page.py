"""Results as one HTML page that needs nothing else: no scripts, no network."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

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
from precise_rag.evaluation.runs.run import Piece, Run
from precise_rag.viz.charts import line_chart, score_curve, shorten

_N_CURVES = 6
_N_EXAMPLES = 5
_SHOWN_PIECES = 6

_STYLE = """
:root{--ink:#1d2129;--paper:#fff;--line:#dfe2e8;--soft:#f5f6f8;--mark:#ffe08a}
@media(prefers-color-scheme:dark){
:root{--ink:#e6e8ec;--paper:#16181d;--line:#343943;--soft:#20242b;--mark:#7a5c00}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
body{max-width:1080px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{margin-top:2.5rem}h3{margin-top:1.6rem;font-size:1.05rem}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .55rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}tr.base{background:var(--soft)}
.wide{overflow-x:auto}svg{width:100%;max-width:760px;height:auto}svg.small{width:236px;margin:0 .4rem .4rem 0}
svg text{font-size:11px;fill:currentColor}svg .title{font-weight:600}
svg .grid{stroke:var(--line)}svg .cut{stroke:currentColor;stroke-dasharray:4 3}
.up{color:#008a5e}.down{color:#c4460c}mark{background:var(--mark);color:inherit}
details{border:1px solid var(--line);border-radius:6px;padding:.5rem .8rem;margin:.5rem 0}
summary{cursor:pointer}.sides{display:grid;grid-template-columns:1fr 1fr;gap:1rem}
.piece{background:var(--soft);border-radius:4px;padding:.4rem .6rem;margin:.4rem 0}
.piece{font-size:.86rem;white-space:pre-wrap}
.small-print{color:#767c86;font-size:.85rem}
@media(max-width:700px){.sides{grid-template-columns:1fr}}
"""


def render_report(outcomes: Sequence[Outcome], circumstances: dict[str, Any]) -> str:
    """The page: recall against tokens, tables, score curves and cuts, questions won and lost."""
    body = "".join(_dataset(outcome) for outcome in outcomes)
    made = ", ".join(
        f"{key}: {value if not isinstance(value, dict) else ' '.join(f'{k} {v}' for k, v in value.items())}"
        for key, value in circumstances.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Retrieval compared</title><style>{_STYLE}</style></head><body>"
        f'<h1>Retrieval compared</h1><p class="small-print">{escape(made)}</p>{body}</body></html>'
    )


def _dataset(outcome: Outcome) -> str:
    n_questions = len(outcome.measurer.dataset.questions)
    facts = f"{len(outcome.dataset.documents):,} documents, {n_questions:,} questions"
    failed = "".join(
        f'<p class="down">{escape(name)} could not run: {escape(why)}</p>'
        for name, why in outcome.failed.items()
    )
    judged = bool(outcome.measurer.dataset.questions[0].evidence)
    return (
        f"<section><h2>{escape(outcome.dataset.name)}</h2><p>{facts}.</p>{failed}"
        f"{_recall_chart(outcome) if judged else ''}{_table(outcome)}{_answers(outcome)}{_curves(outcome)}"
        f"{_examples(outcome) if judged else ''}</section>"
    )


def _recall_chart(outcome: Outcome) -> str:
    budgets = outcome.measurer.budgets
    series = {
        row.name: [(float(b), 100 * row.means[f"recall@{b}"].mean) for b in budgets] for row in outcome.rows
    }
    stock = [run.settings.name for run in outcome.runs if run.settings.is_stock]
    muted = stock if len(stock) < len(series) else ()
    return line_chart(series, x_label="tokens sent", y_label="evidence that arrives", muted=muted)


def _table(outcome: Outcome) -> str:
    names = columns(outcome.rows)
    body = []
    for row in outcome.rows if names else ():
        cells = [f"<td>{escape(row.name)}</td>"]
        for name in names:
            text = cell(name, row.means[name], row.against_baseline.get(name)).strip()
            css = {"+": "up", "-": "down"}.get(text[-1], "")
            cells.append(f'<td class="{css}">{text}</td>')
        body.append(_table_row(outcome, row.name, cells))
    note = (
        "Shares in percent, ± half of the 95 % bootstrap interval (documents drawn whole). "
        f"+ and -: differs from {escape(outcome.baseline)} in a paired test, p &lt; 0.05."
    )
    quality = f'{_wide(["pipeline", *names], body)}<p class="small-print">{note}</p>' if names else ""
    costs = [
        _table_row(outcome, row.name, [f"<td>{escape(text)}</td>" for text in cost_cells(row, outcome.rows)])
        for row in outcome.rows
    ]
    kept = (
        "Everything the pipeline keeps, with no budget. ms: one question, its vector known; build: cutting "
        "and indexing, with the vectors that were in the cache; memory: by how much the process grew."
    )
    return f'{quality}{_wide(cost_columns(outcome.rows), costs)}<p class="small-print">{kept}</p>'


def _table_row(outcome: Outcome, name: str, cells: Sequence[str]) -> str:
    return f'<tr class="{"base" if name == outcome.baseline else ""}">{"".join(cells)}</tr>'


def _wide(header: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _answers(outcome: Outcome) -> str:
    if not outcome.answers:
        return ""
    body = [
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in answer_cells(row))}</tr>"
        for row in outcome.answers
    ]
    model = escape(outcome.answers[0].model)
    return f"<h3>Answers by {model}</h3>{_wide(answer_columns(outcome.answers[0]), body)}"


def _curves(outcome: Outcome) -> str:
    run = next((r for r in reversed(outcome.runs) if r.settings.select is not None), outcome.runs[-1])
    questions = outcome.measurer.dataset.questions
    step = max(1, len(questions) // _N_CURVES)
    shown = "".join(_curve(question, run) for question in questions[::step][:_N_CURVES])
    return (
        f"<h3>Score curves and cuts: {escape(run.settings.name)}</h3><div>{shown}</div>"
        '<p class="small-print">One dot a candidate, by rank; filled: kept; orange: holds evidence; '
        "dashed: where the selection cut.</p>"
    )


def _curve(question: Question, run: Run) -> str:
    pieces = run.pieces[question.id][:40]
    useful = [any(_overlap(piece, e) for e in question.evidence) for piece in pieces]
    return score_curve([p.score for p in pieces], [p.kept for p in pieces], useful, question.text)


def _examples(outcome: Outcome) -> str:
    """The questions that the last pipeline wins and loses by most against the baseline, with the text;
    then all questions, with the recall of each pipeline. At the budget where most of them differ."""
    ours = outcome.measured[-1]
    reference = next(m for m in outcome.measured if m.name == outcome.baseline)
    if ours is reference:
        return ""
    gains = {
        b: ours.values[f"recall@{b}"] - reference.values[f"recall@{b}"] for b in outcome.measurer.budgets
    }
    budget = max(gains, key=lambda b: (int((gains[b] != 0).sum()), -b))
    gain = gains[budget]
    order = np.argsort(-gain, kind="stable").tolist()
    runs = {run.settings.name: run for run in outcome.runs}
    parts = [f"<h3>{escape(ours.name)} against {escape(reference.name)} at {budget:,} tokens</h3>"]
    won = [row for row in order if gain[row] > 0]
    lost = [row for row in reversed(order) if gain[row] < 0]
    for title, rows in (("Won", won), ("Lost", lost)):
        parts.append(f"<h4>{title}: {len(rows)} of {len(gain)} questions</h4>")
        for row in rows[:_N_EXAMPLES]:
            question = outcome.measurer.dataset.questions[row]
            sides = "".join(_side(outcome, runs[name], question) for name in (reference.name, ours.name))
            parts.append(
                f"<details><summary>{escape(question.text)} <b>{100 * gain[row]:+.0f} points</b></summary>"
                f"<p>Accepted: {escape('; '.join(question.answers[:3]) or '(no answer given)')}</p>"
                f'<div class="sides">{sides}</div></details>'
            )
    return "".join(parts) + _all_questions(outcome, budget, order)


def _all_questions(outcome: Outcome, budget: int, order: Sequence[int]) -> str:
    """Recall of every pipeline for every question, the most won first."""
    columns_ = [100 * measured.values[f"recall@{budget}"] for measured in outcome.measured]
    rows = [
        f"<tr><td>{escape(shorten(outcome.measurer.dataset.questions[row].text, 90))}</td>"
        f"{''.join(f'<td>{column[row]:.0f}</td>' for column in columns_)}</tr>"
        for row in order
    ]
    head = ["question", *(measured.name for measured in outcome.measured)]
    title = f"All {len(order)} questions: recall of each pipeline at {budget:,} tokens"
    return f"<details><summary>{title}</summary>{_wide(head, rows)}</details>"


def _side(outcome: Outcome, run: Run, question: Question) -> str:
    kept = [piece for piece in run.pieces[question.id] if piece.kept][:_SHOWN_PIECES]
    documents = outcome.measurer.corpus.documents
    pieces = "".join(
        f'<div class="piece">{_marked(documents[p.doc_id].text, p, question.evidence)}</div>' for p in kept
    )
    return f"<div><b>{escape(run.settings.name)}</b>{pieces or '<p>nothing kept</p>'}</div>"


def _marked(text: str, piece: Piece, evidence: Sequence[Evidence]) -> str:
    """The piece's text with the evidence in it marked."""
    parts, at = [], piece.start
    for place in sorted(e for e in evidence if _overlap(piece, e)):
        start, end = max(at, place.start), min(piece.end, place.end)
        if start < end:
            parts += [escape(text[at:start]), f"<mark>{escape(text[start:end])}</mark>"]
            at = end
    return "".join([*parts, escape(text[at : piece.end])])


def _overlap(piece: Piece, place: Evidence) -> bool:
    return piece.doc_id == place.doc_id and piece.start < place.end and place.start < piece.end
