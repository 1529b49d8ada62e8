"""A segmented document as one HTML page."""

from html import escape
from itertools import pairwise

from precise_rag.segmentation import Segmentation, SegmenterOptions
from precise_rag.types import Document
from precise_rag.viz.charts import gap_curve
from precise_rag.viz.page import html_page, soft, wide

_MOST_POINTS = 400
"""Gaps drawn in one row of the curve; longer documents get several rows."""

_LEGEND = (
    "The curve shows the probability that two neighbouring sentences belong together; the dashed line is "
    "the threshold. The text is cut where the score is low and the length limits allow it. The small "
    "figures in the text are the same scores."
)


def segmentation_page(document: Document, found: Segmentation, options: SegmenterOptions) -> str:
    """Return the page: the curve of scores with the threshold and the cuts, then the shaded chunks.

    found: of `Segmenter.explain`. options: of the segmenter.
    """
    facts = (
        f"{len(found.spans):,} sentences · {len(found.lengths):,} chunks · threshold {options.threshold} · "
        f"max_tokens {options.max_tokens} · min_tokens {options.min_tokens} · paragraphs {options.paragraphs}"
    )
    scores = [float(score) for score in found.scores]
    cuts = {gap: f"#chunk{number}" for number, gap in enumerate(found.cuts.tolist(), start=2)}
    rows = [
        wide(
            gap_curve(
                scores,
                cuts,
                threshold=options.threshold,
                first=first,
                last=min(first + _MOST_POINTS, len(scores)),
            )
        )
        for first in range(0, len(scores), _MOST_POINTS)
    ]
    return html_page(document.id, soft(facts), *rows, soft(_LEGEND), *_chunks(document, found, options))


def _chunks(document: Document, found: Segmentation, options: SegmenterOptions) -> list[str]:
    edges = [0, *(found.cuts + 1).tolist(), len(found.spans)]
    parts: list[str] = []
    for number, (first, last) in enumerate(pairwise(edges), start=1):
        if number > 1:
            score = found.scores[first - 1]
            why = "" if score < options.threshold else " because of the length limits"
            parts.append(f'<p class="cut-at">cut at {score:.2f}{why}</p>')
        sentences = "".join(
            _sentence(
                document.text[slice(*found.spans[row])], _gap(found, row, options) if row + 1 < last else ""
            )
            for row in range(first, last)
        )
        heading = f"<b>{number} · {found.lengths[number - 1]} tokens</b>"
        parts.append(f'<section class="chunk" id="chunk{number}">{heading}{sentences}</section>')
    return parts


def _sentence(text: str, gap: str) -> str:
    words = text.rstrip()
    space = text[len(words) :] if gap else ""
    return f"<span>{escape(words)}</span>{gap}{space}"


def _gap(found: Segmentation, row: int, options: SegmenterOptions) -> str:
    score = float(found.scores[row])
    below = " below" if score < options.threshold else ""
    return f'<small class="gap{below}" style="--score:{score * 100:.0f}">{score:.2f}</small>'
