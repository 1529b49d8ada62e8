"""A segmented document as one HTML page that needs nothing but itself."""

from html import escape
from itertools import pairwise

from precise_rag.segmentation import Segmentation, SegmenterOptions
from precise_rag.types import Document

_HEIGHT, _LEFT, _TOP, _BOTTOM = 150, 34, 10, 18
_MOST_POINTS = 400
"""Gaps drawn in one row of the curve; longer documents get several rows."""

_STYLE = """
:root { --ink: #1d2430; --soft: #667085; --line: #dfe3ea; --same: #14746f; --cut: #c2410c;
  --paper: #ffffff; --a: #f3f7f6; --b: #fbf6ee; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #353c48;
  --same: #4fc3b8; --cut: #fb923c; --paper: #14181f; --a: #1a2326; --b: #26221b; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 52rem; margin: 2rem auto; padding: 0 1.2rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0; } .soft { color: var(--soft); } p.soft { margin: .3rem 0 1rem; }
svg { width: 100%; height: auto; display: block; margin: .6rem 0; }
svg text { fill: var(--soft); font-size: 11px; } .axis { stroke: var(--line); }
.limit { stroke: var(--cut); stroke-dasharray: 4 3; } .score { fill: none; stroke: var(--same); }
.at { stroke: var(--cut); stroke-opacity: .55; } svg circle { fill: var(--cut); }
section { padding: .6rem .9rem; border-radius: .4rem; margin: 0 0 .3rem; white-space: pre-wrap; }
section:nth-of-type(odd) { background: var(--a); } section:nth-of-type(even) { background: var(--b); }
section > b { display: block; font-size: .78rem; font-weight: 500; color: var(--soft); }
.gap { font-size: .68rem; font-variant-numeric: tabular-nums; padding: 0 .25em; white-space: nowrap;
  color: color-mix(in srgb, var(--cut) calc(100% - var(--s) * 1%), var(--line)); }
.below { font-weight: 700; } p.cut { color: var(--cut); font-size: .78rem; margin: 0 0 .3rem .9rem; }
"""


_LEGEND = (
    "The curve is the probability that two neighbouring sentences belong together; the text is cut where "
    "that is low, as the limits allow. The small figures in the text are the same scores."
)


def segmentation_page(document: Document, found: Segmentation, options: SegmenterOptions) -> str:
    """The page: the curve of scores with the threshold and the cuts, then the chunks, shaded."""
    title = escape(document.id)
    facts = (
        f"{len(found.spans):,} sentences · {len(found.lengths):,} chunks · threshold {options.threshold} · "
        f"max_tokens {options.max_tokens} · min_tokens {options.min_tokens} · paragraphs {options.paragraphs}"
    )
    n_gaps = len(found.scores)
    rows = [
        _curve(found, options, first, min(first + _MOST_POINTS, n_gaps))
        for first in range(0, n_gaps, _MOST_POINTS)
    ]
    return "\n".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{_STYLE}</style></head><body>",
            f'<h1>{title}</h1><p class="soft">{facts}</p>',
            *rows,
            f'<p class="soft">{_LEGEND}</p>',
            *_chunks(document, found, options),
            "</body></html>",
        )
    )


def _curve(found: Segmentation, options: SegmenterOptions, first: int, last: int) -> str:
    width = 900
    step = (width - _LEFT - 6) / max(last - first, 1)
    depth = _HEIGHT - _TOP - _BOTTOM

    def x(gap: float) -> float:
        return round(_LEFT + (gap - first + 0.5) * step, 1)

    def y(score: float) -> float:
        return round(_TOP + (1 - score) * depth, 1)

    points = " ".join(f"{x(gap)},{y(float(found.scores[gap]))}" for gap in range(first, last))
    cuts = [gap for gap in found.cuts.tolist() if first <= gap < last]
    chunk_of = {gap: number for number, gap in enumerate(found.cuts.tolist(), start=2)}
    marks = "".join(
        f'<a href="#chunk{chunk_of[gap]}"><line class="at" x1="{x(gap)}" x2="{x(gap)}" y1="{_TOP}" '
        f'y2="{_TOP + depth}"/><circle cx="{x(gap)}" cy="{y(float(found.scores[gap]))}" r="3">'
        f"<title>after sentence {gap + 1}: {found.scores[gap]:.2f}</title></circle></a>"
        for gap in cuts
    )
    axes = "".join(
        f'<line class="axis" x1="{_LEFT}" x2="{width}" y1="{y(level)}" y2="{y(level)}"/>'
        f'<text x="{_LEFT - 6}" y="{y(level) + 4}" text-anchor="end">{level:g}</text>'
        for level in (0, 0.5, 1)
    )
    limit = y(options.threshold)
    return (
        f'<svg viewBox="0 0 {width} {_HEIGHT}" role="img" aria-label="scores of the gaps">{axes}'
        f'<line class="limit" x1="{_LEFT}" x2="{width}" y1="{limit}" y2="{limit}"/>{marks}'
        f'<polyline class="score" points="{points}"/>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 4}">sentence {first + 1}</text>'
        f'<text x="{width}" y="{_HEIGHT - 4}" text-anchor="end">{last + 1}</text></svg>'
    )


def _chunks(document: Document, found: Segmentation, options: SegmenterOptions) -> list[str]:
    edges = [0, *(found.cuts + 1).tolist(), len(found.spans)]
    parts: list[str] = []
    for number, (first, last) in enumerate(pairwise(edges), start=1):
        if number > 1:
            score = found.scores[first - 1]
            why = "" if score < options.threshold else ", as the limits ask"
            parts.append(f'<p class="cut">cut at {score:.2f}{why}</p>')
        sentences = "".join(
            _sentence(
                document.text[slice(*found.spans[row])], _gap(found, row, options) if row + 1 < last else ""
            )
            for row in range(first, last)
        )
        heading = f"<b>{number} · {found.lengths[number - 1]} tokens</b>"
        parts.append(f'<section id="chunk{number}">{heading}{sentences}</section>')
    return parts


def _sentence(text: str, gap: str) -> str:
    words = text.rstrip()
    return (
        f"<span>{escape(words)}</span>{gap}{escape(text[len(words) :])}"
        if gap
        else f"<span>{escape(words)}</span>"
    )


def _gap(found: Segmentation, row: int, options: SegmenterOptions) -> str:
    score = float(found.scores[row])
    below = " below" if score < options.threshold else ""
    return f'<small class="gap{below}" style="--s:{score * 100:.0f}">{score:.2f}</small>'
