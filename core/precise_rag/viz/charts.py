"""Inline SVG: recall against tokens, and score curves with their cuts."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195", "#8c564b")
"""Colours that stay apart for colour-blind readers (Okabe and Ito, without yellow and black)."""

_MUTED = "#8a8f98"
_LABEL_STEP = 13


def line_chart(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_label: str,
    y_label: str,
    muted: Sequence[str] = (),
    points: Mapping[str, tuple[float, float]] | None = None,
    width: int = 760,
    height: int = 380,
) -> str:
    """Lines over a logarithmic x axis, each named at its end; `muted` ones in grey. y is in percent.

    points: single diamonds, named above to the left or, in the left half, below to the right, where a
    rising line leaves room.
    """
    left, right, top, bottom = 52, 260, 30, 44
    points = points or {}
    every = [*(point for line in series.values() for point in line), *points.values()]
    xs = sorted({x for line in series.values() for x, _ in line})
    near, far = min(x for x, _ in every), max(x for x, _ in every)
    low = 10 * math.floor(min(y for _, y in every) / 10)
    high = 10 * math.ceil(max(y for _, y in every) / 10)
    high = max(high, low + 10)
    span = math.log(far / near) or 1.0

    def px(x: float) -> float:
        return left + (width - left - right) * math.log(x / near) / span

    def py(y: float) -> float:
        return top + (height - top - bottom) * (high - y) / (high - low)

    parts = [
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(y_label)} by {escape(x_label)}">'
    ]
    step = 10 if high - low <= 60 else 20
    for share in range(low, high + 1, step):
        parts.append(
            f'<line class="grid" x1="{left}" x2="{width - right}" y1="{py(share):.1f}" y2="{py(share):.1f}"/>'
        )
        parts.append(f'<text x="{left - 8}" y="{py(share) + 4:.1f}" text-anchor="end">{share}%</text>')
    parts.extend(
        f'<text x="{px(x):.1f}" y="{height - bottom + 18}" text-anchor="middle">{x:,.0f}</text>' for x in xs
    )
    middle = (left + width - right) / 2
    parts.append(f'<text x="{middle:.0f}" y="{height - 6}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(f'<text class="title" x="{8}" y="{top - 14}">{escape(y_label)}</text>')
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
        end = px(line[-1][0])
        parts.append(
            f'<polyline points="{end + 4:.1f},{ends[name]:.1f} {end + 14:.1f},{place:.1f}" '
            f'fill="none" stroke="{colour}" stroke-width="0.7"/>'
            f'<text x="{end + 17:.1f}" y="{place + 4:.1f}" style="fill:{colour}">'
            f"{escape(name)} {line[-1][1]:.0f}</text>"
        )
    for name, (x, y) in points.items():
        anchor = "end" if px(x) > middle else "start"
        parts.append(
            f'<path d="M{px(x):.1f} {py(y) - 6:.1f}l6 6l-6 6l-6 -6z" fill="{colours[name]}"/>'
            f'<text x="{px(x):.1f}" y="{py(y) + (-11 if anchor == "end" else 20):.1f}" '
            f'text-anchor="{anchor}" style="fill:{colours[name]}">'
            f"{escape(name)}: {y:.0f}% in {x:,.0f} tokens</text>"
        )
    return "".join([*parts, "</svg>"])


def score_curve(scores: Sequence[float], kept: Sequence[bool], useful: Sequence[bool], title: str) -> str:
    """Scores by rank as dots: filled if kept, hollow if dropped, in colour if they hold evidence.

    A dashed line marks the cut where everything behind it was dropped.
    """
    width, height, pad = 236, 96, 8
    if not scores:
        return ""
    low, high = min(0.0, *scores), max(scores)
    scale = (high - low) or 1.0

    def px(rank: float) -> float:
        return pad + (width - 2 * pad) * (rank + 0.5) / len(scores)

    def py(score: float) -> float:
        return 20 + (height - 20 - pad) * (high - score) / scale

    parts = [
        f'<svg class="small" viewBox="0 0 {width} {height}" role="img"><title>{escape(title)}</title>'
        f'<text x="{pad}" y="12">{escape(shorten(title, 32))}</text>'
    ]
    cut = max((rank for rank, keep in enumerate(kept) if keep), default=-1) + 0.5
    if cut < len(scores) - 1:
        parts.append(f'<line class="cut" x1="{px(cut):.1f}" x2="{px(cut):.1f}" y1="18" y2="{height - pad}"/>')
    for rank, (score, keep, good) in enumerate(zip(scores, kept, useful, strict=True)):
        colour = COLOURS[1] if good else _MUTED
        parts.append(
            f'<circle cx="{px(rank):.1f}" cy="{py(score):.1f}" r="2.5" stroke="{colour}" '
            f'fill="{colour if keep else "none"}"/>'
        )
    return "".join([*parts, "</svg>"])


def _colours(names: Sequence[str], muted: Sequence[str]) -> dict[str, str]:
    loud = [name for name in names if name not in muted]
    return {name: COLOURS[loud.index(name) % len(COLOURS)] if name in loud else _MUTED for name in names}


def _spread(places: Mapping[str, float], low: float, high: float) -> dict[str, float]:
    """Label places in the given order of height, pushed apart so that none overlap."""
    ordered = sorted(places, key=places.__getitem__)
    spread = {name: places[name] for name in ordered}
    for above, below in pairwise(ordered):
        spread[below] = max(spread[below], spread[above] + _LABEL_STEP)
    limit = high
    for name in reversed(ordered):
        spread[name] = min(spread[name], limit)
        limit = spread[name] - _LABEL_STEP
    return {name: max(place, low) for name, place in spread.items()}


def shorten(text: str, length: int) -> str:
    """At most `length` characters of the text."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
