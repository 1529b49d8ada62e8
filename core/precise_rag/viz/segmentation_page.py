"""A segmented document as one HTML page."""

from html import escape
from itertools import groupby, pairwise

from precise_rag.segmentation import Segmentation, SegmenterOptions
from precise_rag.titles import joined_titles
from precise_rag.types import Document
from precise_rag.viz.charts import gap_curve
from precise_rag.viz.cut_reasons import REASONS
from precise_rag.viz.page import code, html_page, soft, two_sizes

_MOST_POINTS = 400
"""Gaps drawn in one row of the curve; longer documents get several rows."""

_MOST_ON_PHONE = 150

_LEGEND = (
    "The curve shows the probability that two neighbouring sentences belong together; the dashed line is "
    "the threshold. A dot in the text is a place under it; a pointer over a dot shows the score. The text is "
    "cut where the score is low, as far as the lengths of the chunks and the structure of the text allow it: "
    "a heading stays with what follows it, a lead-in with its list or code, and a table or code block in one "
    "piece."
)


def segmentation_page(document: Document, segmentation: Segmentation, options: SegmenterOptions) -> str:
    """Return the page: the curve of scores with the threshold and the cuts, then the shaded chunks.

    segmentation: of `Segmenter.explain`. options: of the segmenter.
    """
    names = ("threshold", "max_tokens", "target_tokens", "min_tokens", "paragraphs")
    settings = " · ".join(f"{name} {getattr(options, name)}" for name in names)
    sizes = f"{len(segmentation.spans):,} sentences · {len(segmentation.lengths):,} chunks"
    facts = f"{sizes} · read as {segmentation.structure.format} · {settings}"
    scores = [float(score) for score in segmentation.scores]
    cuts = {gap: f"#chunk{number}" for number, gap in enumerate(segmentation.cuts.tolist(), start=2)}

    def curves(most: int, width: int) -> str:
        return "".join(
            gap_curve(
                scores,
                cuts,
                threshold=options.threshold,
                first=first,
                last=min(first + most, len(scores)),
                width=width,
            )
            for first in range(0, len(scores), most)
        )

    rows = two_sizes(curves(_MOST_POINTS, 900), curves(_MOST_ON_PHONE, 340))
    return html_page(document.id, soft(facts), rows, soft(_LEGEND), *_chunks(document, segmentation, options))


def _chunks(document: Document, segmentation: Segmentation, options: SegmenterOptions) -> list[str]:
    edges = [0, *(segmentation.cuts + 1).tolist(), len(segmentation.spans)]
    parts: list[str] = []
    for number, (first, last) in enumerate(pairwise(edges), start=1):
        if number > 1:
            score, why = segmentation.scores[first - 1], REASONS[segmentation.reasons[number - 2]]
            parts.append(f'<p class="cut-at">cut at {score:.2f}: {why}</p>')
        blocks = groupby(range(first, last), key=segmentation.blocks.__getitem__)
        body = "".join(_block(document, segmentation, list(rows), last, options) for _, rows in blocks)
        path = segmentation.structure.heading_path(int(segmentation.spans[first, 0]))
        above = joined_titles(path)
        facts = f"{number} · {segmentation.lengths[number - 1]} tokens{' · ' if above else ''}{escape(above)}"
        parts.append(f'<section class="chunk" id="chunk{number}"><b>{facts}</b>{body}</section>')
    return parts


def _block(
    document: Document, segmentation: Segmentation, rows: list[int], last: int, options: SegmenterOptions
) -> str:
    """The sentences of one block; code and tables keep their lines."""
    block = segmentation.structure.blocks[int(segmentation.blocks[rows[0]])]
    gap = _gap(segmentation, rows[-1], options) if rows[-1] + 1 < last else ""
    if block.kind in ("code", "table"):
        text = document.text[int(segmentation.spans[rows[0], 0]) : int(segmentation.spans[rows[-1], 1])]
        return f"{code(text)}{gap}"
    sentences = "".join(
        _sentence(
            document.text[slice(*segmentation.spans[row])],
            _gap(segmentation, row, options) if row + 1 < last else "",
        )
        for row in rows
    )
    name = f"{block.kind} {block.level}" if block.level else block.kind
    return f'<span class="{block.kind}" title="{name}">{sentences}</span>'


def _sentence(text: str, gap: str) -> str:
    words = text.rstrip()
    space = text[len(words) :] if gap else ""
    return f"<span>{escape(words)}</span>{gap}{space}"


def _gap(segmentation: Segmentation, row: int, options: SegmenterOptions) -> str:
    """A dot where the text could be cut; nothing elsewhere."""
    score = float(segmentation.scores[row])
    if score >= options.threshold:
        return ""
    return f'<small class="gap below" title="{score:.2f}" aria-label="gap of {score:.2f}">·</small>'
