"""The stages of a question, on the page of a trace: a time line, and the rank of each piece after each."""

from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite
from typing import Any

from precise_rag.viz.charts import ScoredRank, score_curve
from precise_rag.viz.page import folded, soft, two_sizes


def time_line(stages: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]]) -> str:
    """Return a bar for each stage and model call, one after another, with its milliseconds."""
    steps = [
        (
            stage["stage"] + (f", round {stage['round']}" if stage["round"] is not None else ""),
            float(stage["ms"]),
            f"{sum(one['kept'] for one in stage['candidates']):,} of {len(stage['candidates']):,} kept",
            "; ".join(filter(None, (pairs(stage["settings"]), stage["note"]))),
        )
        for stage in stages
    ]
    steps += [(f"model: {call['role']}", float(call["ms"]), str(call["model"]), "") for call in calls]
    total = sum(ms for _, ms, _, _ in steps) or 1.0
    rows, begun = [], 0.0
    for name, ms, about, more in steps:
        bar = f'<i style="margin-left:{97 * begun / total:.1f}%;width:{max(97 * ms / total, 0.6):.1f}%"></i>'
        rows.append(
            f'<li><span class="step"><b>{escape(name)}</b> {escape(about)}</span>'
            f'<span class="ms">{ms:,.1f} ms</span><span class="bar">{bar}</span>'
            f"{soft(more)}</li>"
        )
        begun += ms
    return f'<h2>Time line: {total:,.0f} ms</h2><ol class="line">{"".join(rows)}</ol>' if rows else ""


def selection_section(
    stage: Mapping[str, Any], stages: Sequence[Mapping[str, Any]], *, is_one_of_several: bool
) -> str:
    """Return the score curve of a selection, and its pieces, each with its rank after every stage."""
    candidates = stage["candidates"]
    kept = [candidate for candidate in candidates if candidate["kept"]]
    dropped = [candidate for candidate in candidates if not candidate["kept"]]
    ranks = [
        ScoredRank(c["rank"], float(c["score"]), c["kept"], c["reason"])
        for c in candidates
        if isfinite(float(c["score"]))
    ]
    curve = two_sizes(score_curve(ranks), score_curve(ranks, width=340)) if ranks else ""
    paths = _rank_paths(stages, stage["round"])
    where = f"Round {escape(str(stage['round']))}: " if is_one_of_several else ""
    return "".join(
        (
            f"<h2>{where}{len(kept)} of {len(candidates)} pieces kept{_tokens(kept)}</h2>",
            soft(pairs(stage["settings"])),
            curve,
            pieces(kept, paths),
            folded(f"{len(dropped)} dropped", pieces(dropped, paths)) if dropped else "",
        )
    )


def pieces(candidates: Sequence[Mapping[str, Any]], paths: Mapping[str, str]) -> str:
    """Return a list of pieces, each with its score, its ranks, why it was kept or dropped, and its text."""
    items = "".join(
        f'<li><p class="facts-of"><b>{escape(str(one["rank"]))}</b> {float(one["score"]):.4g} '
        f'<span class="ranks">{paths.get(one["id"], "")}</span></p>'
        f'<p class="words">{escape(one.get("text", "").strip())}</p>'
        f'<p class="why">{escape(one["reason"])} <small>{escape(one["id"])}</small></p></li>'
        for one in candidates
    )
    return f'<ol class="pieces">{items}</ol>' if items else ""


def _rank_paths(stages: Sequence[Mapping[str, Any]], round_number: int | None) -> dict[str, str]:
    """The rank of each piece after each stage of a round: "search 3 › rerank 1"."""
    paths: dict[str, list[str]] = {}
    last: dict[str, int] = {}
    for stage in stages:
        if stage["round"] not in (None, round_number):
            continue
        for candidate in stage["candidates"]:
            key, rank = candidate["id"], candidate["rank"]
            before = last.get(key)
            css = "" if before in (None, rank) else ' class="up"' if rank < (before or 0) else ' class="down"'
            paths.setdefault(key, []).append(f"{escape(stage['stage'])} <b{css}>{escape(str(rank))}</b>")
            last[key] = rank
    return {key: " › ".join(path) for key, path in paths.items()}


def _tokens(kept: Sequence[Mapping[str, Any]]) -> str:
    """How many tokens the kept pieces have; nothing if they were not counted."""
    counts = [candidate["n_tokens"] for candidate in kept]
    return f", {sum(counts):,} tokens" if counts and None not in counts else ""


def pairs(settings: Mapping[str, Any]) -> str:
    """Return settings as words."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())
