"""A trace as one HTML page that needs nothing but itself: no scripts, no fonts, no network.

Made from the plain record (`Trace.to_dict`), so that a record that was stored or sent elsewhere can
still become a page; a record without texts becomes a page without texts.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720, 190, 46, 22, 16

_STYLE = """
:root { --ink: #1d2430; --soft: #667085; --line: #dfe3ea; --keep: #14746f; --drop: #b4bac4; --cut: #c2410c;
  --paper: #ffffff; --panel: #f6f7f9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #353c48;
  --keep: #4fc3b8; --drop: #5b6472; --cut: #fb923c; --paper: #14181f; --panel: #1c222c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1.2rem; overflow-wrap: break-word; }
h1 { font-size: 1.45rem; margin: 0 0 .3rem; }
h2 { font-size: 1.05rem; margin: 2.2rem 0 .6rem; }
.answer { background: var(--panel); border-left: 4px solid var(--keep); padding: .8rem 1rem;
  white-space: pre-wrap; }
.soft { color: var(--soft); }
.facts { display: flex; flex-wrap: wrap; gap: .4rem 2rem; margin: 1rem 0; padding: 0; list-style: none; }
.facts b { display: block; font-size: 1.2rem; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { text-align: left; color: var(--soft); font-weight: 500; white-space: nowrap; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem .35rem 0; vertical-align: top; }
.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td { min-width: 2rem; } td.why { width: 24%; } td.text { overflow-wrap: anywhere; min-width: 12rem; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font-size: 11px; }
.bar-keep { fill: var(--keep); } .bar-drop { fill: var(--drop); } .axis { stroke: var(--line); }
.cut { stroke: var(--cut); stroke-dasharray: 4 3; } svg text.cut-label { fill: var(--cut); }
details { margin: .5rem 0; } summary { cursor: pointer; }
pre { white-space: pre-wrap; background: var(--panel); padding: .6rem .8rem; font-size: .82rem; }
"""


def trace_page(record: Mapping[str, Any]) -> str:
    """The page for a record made by `Trace.to_dict`."""
    selections = [stage for stage in record["stages"] if stage["stage"] == "selection"]
    title = record.get("question", "A question")
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            _answer(record),
            _facts(record),
            _rounds(record["rounds"]),
            *(_selection(stage, several=len(selections) > 1) for stage in selections),
            _stages(record["stages"]),
            _calls(record["calls"]),
            _settings(record["settings"]),
            "</body></html>",
        )
    )


def _answer(record: Mapping[str, Any]) -> str:
    answer = f'<div class="answer">{escape(record["answer"])}</div>' if record.get("answer") else ""
    notes = escape("; ".join(record["notes"]))
    return f'{answer}<p class="soft">{notes}</p>' if notes else answer


def _facts(record: Mapping[str, Any]) -> str:
    about = "about " if record["usage_estimated"] else ""
    facts = {
        "milliseconds": f"{record['ms']:,.0f}",
        "rounds": str(len(record["rounds"])),
        "model calls": str(len(record["calls"])),
        "tokens in": f"{about}{record['input_tokens']:,}",
        "tokens out": f"{about}{record['output_tokens']:,}",
        "cost": _cost(record["cost"]),
    }
    items = "".join(f"<li><b>{value}</b>{name}</li>" for name, value in facts.items())
    return f'<ul class="facts">{items}</ul>'


def _selection(stage: Mapping[str, Any], *, several: bool) -> str:
    candidates = stage["candidates"]
    kept = [candidate for candidate in candidates if candidate["kept"]]
    dropped = [candidate for candidate in candidates if not candidate["kept"]]
    where = f"Round {stage['round']}: " if several else ""
    settings = ", ".join(f"{name} {value}" for name, value in stage["settings"].items())
    folded = f"<details><summary>{len(dropped)} dropped</summary>{_candidates(dropped)}</details>"
    return (
        f"<h2>{where}{len(kept)} of {len(candidates)} chunks kept</h2>"
        f'<p class="soft">{escape(settings)}</p>{_curve(candidates)}'
        f"{_candidates(kept) if kept else ''}{folded if dropped else ''}"
    )


def _candidates(candidates: Iterable[Mapping[str, Any]]) -> str:
    rows = (
        (
            _cell(candidate["rank"], "num"),
            _cell(f"{candidate['score']:.4g}", "num"),
            f'<td class="text"><span class="soft">{escape(candidate["id"])}</span> '
            f"{escape(' '.join(candidate.get('text', '').split()))}</td>",
            _cell(candidate["reason"], "why"),
        )
        for candidate in candidates
    )
    return _table(("rank", "score", "chunk", "why"), rows)


def _curve(candidates: Sequence[Mapping[str, Any]]) -> str:
    """Scores by rank as bars, with a line behind the last candidate that is kept."""
    if not candidates:
        return ""
    scores = [float(candidate["score"]) for candidate in candidates]
    low, high = min(0.0, *scores), max(0.0, *scores)
    span = high - low or 1.0
    step = (_WIDTH - _LEFT) / len(scores)
    height = _HEIGHT - _BOTTOM - _TOP

    def y(score: float) -> float:
        return _TOP + height * (high - score) / span

    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="score by rank">',
        f'<text x="{_LEFT - 6}" y="{y(high) + 4:.1f}" text-anchor="end">{high:.3g}</text>',
        f'<text x="{_LEFT - 6}" y="{y(low) + 4:.1f}" text-anchor="end">{low:.3g}</text>',
    ]
    for n, (candidate, score) in enumerate(zip(candidates, scores, strict=True)):
        top, bottom = sorted((y(score), y(0.0)))
        kind = "keep" if candidate["kept"] else "drop"
        parts.append(
            f'<rect class="bar-{kind}" x="{_LEFT + n * step + step * 0.12:.1f}" y="{top:.1f}" '
            f'width="{step * 0.76:.1f}" height="{max(bottom - top, 1):.1f}">'
            f"<title>rank {candidate['rank']}: {score:.4g}, {escape(candidate['reason'])}</title></rect>"
        )
    parts.append(f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH}" y1="{y(0.0):.1f}" y2="{y(0.0):.1f}"/>')
    every = max(1, len(scores) // 12)
    for n in range(0, len(scores), every):
        x = _LEFT + (n + 0.5) * step
        parts.append(
            f'<text x="{x:.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{candidates[n]["rank"]}</text>'
        )
    cut = 1 + max((n for n, candidate in enumerate(candidates) if candidate["kept"]), default=-1)
    if cut < len(candidates):
        x = _LEFT + cut * step
        side, anchor = (6, "start") if x < _WIDTH * 0.6 else (-6, "end")
        parts.append(
            f'<line class="cut" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4}" y2="{_HEIGHT - _BOTTOM}"/>'
        )
        parts.append(
            f'<text class="cut-label" x="{x + side:.1f}" y="{_TOP - 4}" text-anchor="{anchor}">'
            f"{escape(candidates[cut]['reason'])}</text>"
        )
    return "".join((*parts, "</svg>"))


def _rounds(rounds: Sequence[Mapping[str, Any]]) -> str:
    if not rounds:
        return ""
    rows = (
        (
            _cell(turn["round"], "num"),
            _cell(turn["min_k"], "num"),
            _cell(len(turn["kept"]), "num"),
            _cell("–" if turn["score"] is None else turn["score"], "num"),
            _cell({-1: "less", 0: "as it is", 1: "more", None: ""}[turn["adjustment"]]),
            _cell(turn["decision"]),
            _cell(turn.get("text", ""), "text"),
        )
        for turn in rounds
    )
    names = ("round", "min_k", "chunks", "score", "context", "then", "draft")
    return f"<h2>Feedback</h2>{_table(names, rows)}"


def _stages(stages: Sequence[Mapping[str, Any]]) -> str:
    rows = (
        (
            _cell(stage["stage"]),
            _cell("" if stage["round"] is None else stage["round"], "num"),
            _cell(f"{stage['ms']:,.1f}", "num"),
            _cell(f"{sum(c['kept'] for c in stage['candidates'])} of {len(stage['candidates'])}", "num"),
            _cell(", ".join(f"{name} {value}" for name, value in stage["settings"].items())),
            _cell(stage["note"]),
        )
        for stage in stages
    )
    return "<h2>Stages</h2>" + _table(("stage", "round", "ms", "kept", "settings", ""), rows)


def _calls(calls: Sequence[Mapping[str, Any]]) -> str:
    if not calls:
        return ""
    rows = (
        (
            _cell(call["role"]),
            _cell("" if call["round"] is None else call["round"], "num"),
            _cell(call["model"]),
            _cell(call["prompt_version"]),
            _cell(f"{call['ms']:,.0f}", "num"),
            _cell(f"{call['input_tokens']:,}", "num"),
            _cell(f"{call['output_tokens']:,}", "num"),
            _cell(_cost(call["cost"]), "num"),
            _cell(call["error"]),
        )
        for call in calls
    )
    names = ("for", "round", "model", "prompt", "ms", "tokens in", "out", "cost", "")
    texts = "".join(
        f"<details><summary>{escape(call['role'])}, {escape(call['prompt_version'])}</summary>"
        + "".join(
            f"<p class=soft>{escape(message['role'])}</p><pre>{escape(message['content'])}</pre>"
            for message in call["messages"]
        )
        + f"<p class=soft>reply</p><pre>{escape(call['text'])}</pre></details>"
        for call in calls
        if "messages" in call
    )
    return f"<h2>Model calls</h2>{_table(names, rows)}{texts}"


def _settings(settings: Mapping[str, Any]) -> str:
    if not settings:
        return ""
    text = json.dumps(settings, ensure_ascii=False, indent=2, default=str)
    return f"<details><summary>settings</summary><pre>{escape(text)}</pre></details>"


def _cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.6f}"


def _cell(value: object, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f"<td{attribute}>{escape(str(value))}</td>"


def _table(names: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
