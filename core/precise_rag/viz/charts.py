"""SVG charts: lines, scores by rank with the cut, and the scores of the gaps of a document.

The classes of the elements are styled by `page.py`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from precise_rag.viz.page import shorten

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195", "#8c564b")
"""Colours that colour-blind readers can tell apart (Okabe and Ito, without yellow and black)."""

_MUTED = "#8a8f98"
_LABEL_STEP = 14
"""Least distance between the names of two lines."""


def _svg(width: float, height: float, label: str, parts: Iterable[str], *, role: str = "img") -> str:
    """Return an SVG element with a text alternative.

    role: "img", or "group" if the parts hold links.
    """
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="{role}" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def line_chart(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_label: str,
    y_label: str,
    muted: Sequence[str] = (),
    points: Mapping[str, tuple[float, float]] | None = None,
    width: int = 760,
    height: int = 380,
    has_names: bool = True,
) -> str:
    """Draw lines over a logarithmic x axis, each with its name at its end.

    series: name to (x, y) values, with y in percent.
    muted: names of the lines to draw in grey.
    points: name to an (x, y) value to draw as a diamond. Its name stands above on the left if the point
        is in the right half, otherwise below on the right, where a rising line leaves room.
    has_names: False leaves the names to `chart_legend`.
    """
    left, right, top, bottom = 52, 260 if has_names else 20, 30, 44
    points = points or {}
    every = [*(point for line in series.values() for point in line), *points.values()]
    xs = sorted({x for line in series.values() for x, _ in line})
    near, far = min(x for x, _ in every), max(x for x, _ in every)
    low = 10 * math.floor(min(y for _, y in every) / 10)
    high = max(10 * math.ceil(max(y for _, y in every) / 10), low + 10)
    span = math.log(far / near) or 1.0

    def px(x: float) -> float:
        return left + (width - left - right) * math.log(x / near) / span

    def py(y: float) -> float:
        return top + (height - top - bottom) * (high - y) / (high - low)

    parts = []
    for share in range(low, high + 1, 10 if high - low <= 60 else 20):
        parts.append(_horizontal("grid", left, width - right, py(share)))
        parts.append(_text(left - 8, py(share) + 4, f"{share}%", "end"))
    parts.extend(_text(px(x), height - bottom + 18, f"{x:,.0f}", "middle") for x in xs)
    middle = (left + width - right) / 2
    parts.append(_text(middle, height - 6, x_label, "middle"))
    parts.append(_text(8, top - 14, y_label, css="title"))
    ends = {name: py(line[-1][1]) for name, line in series.items()}
    colours = {**_colours(list(series), muted), **dict.fromkeys(points, COLOURS[1])}
    places = _spread(ends, top, height - bottom)
    for name in sorted(series, key=lambda name: name not in muted):
        line, colour, place = series[name], colours[name], places[name]
        path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in line)
        weight = 1.4 if name in muted else 2.8
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{weight}"/>')
        if name not in muted:
            parts.extend(
                f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3" fill="{colour}"/>' for x, y in line
            )
        if not has_names:
            continue
        end = px(line[-1][0])
        parts.append(
            f'<polyline points="{end + 4:.1f},{ends[name]:.1f} {end + 14:.1f},{place:.1f}" '
            f'fill="none" stroke="{colour}" stroke-width="{weight}"/>'
        )
        css = "" if name in muted else "name-label"
        parts.append(_text(end + 17, place + 4, f"{name} {line[-1][1]:.0f}", css=css))
    for name, (x, y) in points.items():
        anchor, below = ("end", -11) if px(x) > middle else ("start", 20)
        parts.append(f'<path d="M{px(x):.1f} {py(y) - 6:.1f}l6 6l-6 6l-6 -6z" fill="{colours[name]}"/>')
        words = f"{name}: {y:.0f}% in {x:,.0f} tokens"
        parts.append(_text(px(x), py(y) + below, words, anchor, css="name-label"))
    ending = ", ".join(f"{name} {line[-1][1]:.0f}%" for name, line in series.items())
    return _svg(width, height, f"{y_label} by {x_label}; at {far:,.0f}: {ending}", parts)


def chart_legend(series: Mapping[str, Sequence[tuple[float, float]]], muted: Sequence[str] = ()) -> str:
    """Return the names of the lines of a `line_chart` as a list, with their colours and last values."""
    colours = _colours(list(series), muted)
    items = "".join(
        f'<li><i style="background:{colours[name]}"></i>{escape(name)} {line[-1][1]:.0f}</li>'
        for name, line in sorted(series.items(), key=lambda one: -one[1][-1][1])
    )
    return f'<ul class="legend-of">{items}</ul>'


class ScoredRank(NamedTuple):
    """One bar of a score curve: a candidate's rank and score, and whether and why it was kept."""

    rank: int
    score: float
    kept: bool
    reason: str = ""
    has_evidence: bool = False


def score_curve(
    ranks: Sequence[ScoredRank], title: str = "", *, small: bool = False, width: int = 720
) -> str:
    """Draw scores by rank as bars, with a dashed line after the last kept candidate.

    small: a picture of 236 by 96 with the title and no axes, to stand beside its like.
    width: of the picture if it is not small.
    Returns an empty string without ranks.
    """
    if not ranks:
        return ""
    width, height = (236, 96) if small else (width, 190)
    left, top, bottom = (8, 20, 8) if small else (52, 24, 24)
    scores = [one.score for one in ranks]
    low, high = min(0.0, *scores), max(0.0, *scores)
    step = min((width - left) / len(ranks), 24 if small else 60)

    def py(score: float) -> float:
        return top + (height - top - bottom) * (high - score) / (high - low or 1.0)

    parts = [f"<title>{escape(title)}</title>"] if title else []
    if small:
        parts.append(_text(left, 13, shorten(title, 34)))
    else:
        parts += [_text(left - 6, py(level) + 4, f"{level:.3g}", "end") for level in sorted({low, high})]
        every = max(1, -(-len(ranks) * 60 // width))
        parts += [
            _text(left + (n + 0.5) * step, height - 7, str(ranks[n].rank), "middle")
            for n in range(0, len(ranks), every)
        ]
    for n, one in enumerate(ranks):
        upper, lower = sorted((py(one.score), py(0.0)))
        css = ("evidence " if one.has_evidence else "") + ("keep" if one.kept else "drop")
        reason = f", {one.reason}" if one.reason else ""
        parts.append(
            f'<rect class="{css}" x="{left + (n + 0.12) * step:.1f}" y="{upper:.1f}" '
            f'width="{0.76 * step:.1f}" height="{max(lower - upper, 1):.1f}">'
            f"<title>rank {one.rank}: {one.score:.4g}{escape(reason)}</title></rect>"
        )
    parts.append(_horizontal("axis", left, width, py(0.0)))
    cut = 1 + max((n for n, one in enumerate(ranks) if one.kept), default=-1)
    if cut < len(ranks):
        x = left + cut * step
        parts.append(_vertical("cut", x, top - 4, height - bottom))
        if not small:
            side, anchor = (6, "start") if x < width * 0.5 else (-6, "end")
            parts.append(
                _text(x + side, top - 8, shorten(ranks[cut].reason, width // 13), anchor, css="cut-label")
            )
    n_kept = sum(one.kept for one in ranks)
    ends = f"; the last kept is rank {ranks[cut - 1].rank}" if cut else ""
    about = f"{title}: " if title else ""
    return _svg(width, height, f"{about}scores by rank, {n_kept} of {len(ranks)} kept{ends}", parts)


def gap_curve(
    scores: Sequence[float],
    cuts: Mapping[int, str],
    *,
    threshold: float,
    first: int,
    last: int,
    width: int = 900,
) -> str:
    """Draw the scores of the gaps `first` to `last - 1` of a document, with the threshold and the cuts.

    scores: of all gaps, in [0, 1]; gap i is after sentence i, from 0.
    cuts: gap to the address that its mark links to.
    """
    height, left, top, bottom = 150, 34, 10, 18
    step = (width - left - 6) / max(last - first, 1)
    depth = height - top - bottom

    def px(gap: float) -> float:
        return left + (gap - first + 0.5) * step

    def py(score: float) -> float:
        return top + (1 - score) * depth

    parts = []
    for level in (0, 0.5, 1):
        parts.append(_horizontal("grid", left, width, py(level)))
        parts.append(_text(left - 6, py(level) + 4, f"{level:g}", "end"))
    parts.append(_horizontal("limit", left, width, py(threshold)))
    shown = {gap: cuts[gap] for gap in range(first, last) if gap in cuts}
    for gap, address in shown.items():
        score = scores[gap]
        parts.append(
            f'<a href="{escape(address)}"><title>cut after sentence {gap + 1}: {score:.2f}</title>'
            f"{_vertical('at', px(gap), top, top + depth)}"
            f'<circle class="point" cx="{px(gap):.1f}" cy="{py(score):.1f}" r="3"/></a>'
        )
    line = " ".join(f"{px(gap):.1f},{py(scores[gap]):.1f}" for gap in range(first, last))
    parts.append(f'<polyline class="score" points="{line}"/>')
    parts.append(_text(left, height - 4, f"sentence {first + 1}"))
    parts.append(_text(width, height - 4, str(last + 1), "end"))
    label = (
        f"scores of the gaps between sentences {first + 1} and {last + 1}, "
        f"threshold {threshold:g}, cuts: {len(shown)}"
    )
    return _svg(width, height, label, parts, role="group")


def _horizontal(css: str, x1: float, x2: float, y: float) -> str:
    return f'<line class="{css}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _vertical(css: str, x: float, y1: float, y2: float) -> str:
    return f'<line class="{css}" x1="{x:.1f}" x2="{x:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, words: str, anchor: str = "start", *, css: str = "") -> str:
    looks = f' class="{css}"' if css else ""
    return f'<text{looks} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _colours(names: Sequence[str], muted: Sequence[str]) -> dict[str, str]:
    loud = [name for name in names if name not in muted]
    return {name: COLOURS[loud.index(name) % len(COLOURS)] if name in loud else _MUTED for name in names}


def _spread(places: Mapping[str, float], low: float, high: float) -> dict[str, float]:
    """Return the places of the labels in the same order, pushed apart so that none overlap."""
    ordered = sorted(places, key=places.__getitem__)
    spread = {name: places[name] for name in ordered}
    for above, below in pairwise(ordered):
        spread[below] = max(spread[below], spread[above] + _LABEL_STEP)
    limit = high
    for name in reversed(ordered):
        spread[name] = min(spread[name], limit)
        limit = spread[name] - _LABEL_STEP
    return {name: max(place, low) for name, place in spread.items()}
