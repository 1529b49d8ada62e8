"""A document cut by two splitters, side by side: as an HTML page and as terminal lines."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

from precise_rag.structure import Structure, read_structure
from precise_rag.types import Document, Span
from precise_rag.viz.page import Html, code, html_page, soft
from precise_rag.viz.terminal import visible

Cut = tuple[str, Sequence[Span], Sequence[int]]
"""A splitter's name, the spans of its chunks, in order, and the tokens of each."""


def comparison_page(document: Document, sides: tuple[Cut, Cut]) -> str:
    """Return the page: the chunks of both splitters in two columns, or below each other on a phone."""
    structure = read_structure(document.text)
    columns = "".join(f"<div>{_column(document, structure, cut)}</div>" for cut in sides)
    facts = " · ".join(_facts(cut) for cut in sides)
    return html_page(document.id, soft(facts), Html(f'<div class="sides">{columns}</div>'))


def _column(document: Document, structure: Structure, cut: Cut) -> str:
    name, spans, n_tokens = cut
    chunks = "".join(
        f'<section class="chunk"><b>{number} · {_counted(tokens, "token")}</b>'
        f"{_marked(document.text, structure, span)}</section>"
        for number, (span, tokens) in enumerate(zip(spans, n_tokens, strict=True), start=1)
    )
    return f"<h2>{escape(name)}</h2>{chunks}"


def _marked(text: str, structure: Structure, span: Span) -> str:
    """The text of a chunk as markup: code and tables keep their lines."""
    end = span.start + len(text[span.start : span.end].rstrip())
    first, last = structure.block_numbers([span.start, max(end - 1, span.start)]).tolist()
    parts: list[str] = []
    for block in structure.blocks[first : last + 1]:
        words = text[max(block.start, span.start) : min(block.end, end)]
        if block.kind in ("code", "table"):
            parts.append(code(words))
        else:
            parts.append(f'<span class="{block.kind}">{escape(words)}</span>')
    return "".join(parts)


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
    return f"{name}: {_counted(len(spans), 'chunk')}, {mean:.0f} tokens on average"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
