"""A document cut by two splitters, side by side: as an HTML page and as terminal lines."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from precise_rag.types import Document, Span
from precise_rag.viz.page import Html, html_page, soft
from precise_rag.viz.terminal import visible

Cut = tuple[str, Sequence[Span], Sequence[int]]
"""A splitter's name, the spans of its chunks, in order, and the tokens of each."""


def comparison_page(document: Document, sides: tuple[Cut, Cut]) -> str:
    """Return the page: the chunks of both splitters in two columns, or below each other on a phone."""
    columns = "".join(f"<div>{_column(document, cut)}</div>" for cut in sides)
    facts = " · ".join(_facts(cut) for cut in sides)
    return html_page(document.id, soft(facts), Html(f'<div class="sides">{columns}</div>'))


def _column(document: Document, cut: Cut) -> str:
    name, spans, n_tokens = cut
    chunks = "".join(
        f'<section class="chunk plain"><b>{number} · {tokens} tokens</b>'
        f"{escape(document.text[start:end].strip())}</section>"
        for number, ((start, end), tokens) in enumerate(zip(spans, n_tokens, strict=True), start=1)
    )
    return f"<h2>{escape(name)}</h2>{chunks}"


def comparison_lines(document: Document, sides: tuple[Cut, Cut]) -> Iterator[str]:
    """Yield the text with a line wherever one of the two splitters begins a chunk, naming which.

    Control characters of the document are written as escapes.
    """
    yield f"{visible(document.id)}: A = {_facts(sides[0])}; B = {_facts(sides[1])}"
    starts = [{span.start: place for place, span in enumerate(spans)} for _, spans, _ in sides]
    places = sorted({0, len(document.text), *starts[0], *starts[1]})
    for start, end in pairwise(places):
        begun = [
            f"{letter}{own[start] + 1} ({n_tokens[own[start]]} tokens)"
            for letter, own, (_, _, n_tokens) in zip("AB", starts, sides, strict=True)
            if start in own
        ]
        if begun:
            yield f"── {' · '.join(begun)} ──"
        if text := document.text[start:end].strip("\n"):
            yield visible(text)


def _facts(cut: Cut) -> str:
    name, spans, n_tokens = cut
    mean = sum(n_tokens) / max(len(n_tokens), 1)
    return f"{name}: {len(spans)} chunks, {mean:.0f} tokens on average"
