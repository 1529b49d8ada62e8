"""A long text, such as the result of a tool, cut down to what answers a question."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from precise_rag.checks import check_number, check_text
from precise_rag.evidence.extractor import EvidenceExtractor
from precise_rag.rerank import load_reranker
from precise_rag.selection import ProbabilitySelector
from precise_rag.sentences.splitters import default_sentence_splitter
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Excerpt, Span, check_query

_LONG, _FEW = 400, 2
"""Characters of a sentence that is looked at again, and records that make it a list of them."""
_RECORD = re.compile(r"\},?\s*(?=\{)")
_LINE = re.compile(r"\n+")


class Pruned(NamedTuple):
    """What is left of a text.

    text: the excerpts in their order. "[… 120-3400]" stands for the characters 120 to 3400 of the whole
        text, which are left out. A text that fits is whole.
    excerpts: the slices of the whole text that are in `text`, in its order; none if the text is whole.
    n_tokens, n_tokens_before: estimated tokens of `text`, and of the whole text.
    """

    text: str
    excerpts: tuple[Excerpt, ...]
    n_tokens: int
    n_tokens_before: int


def prune(text: str, question: str, max_tokens: int = 400, *, reranker: Any = "default") -> Pruned:
    """Cut a long text, such as a page or a tool's result, down to what answers a question.

    text: of any kind and length. question: not blank.
    max_tokens: most tokens of the result, by an estimate; at least 32. What is not worth its tokens is left
        out before that, see `ProbabilitySelector`.
    reranker: scores the sentences; anything that `load_reranker` takes.
    Raises InputError for other arguments.
    """
    check_text("text", text)
    check_query(question)
    check_number("max_tokens", max_tokens, least=32, whole=True)
    before = estimate_tokens(text)
    if before <= max_tokens:
        return Pruned(text, (), before, before)
    mark = estimate_tokens(_mark(len(text), len(text)))
    selector = ProbabilitySelector(max_tokens=max_tokens - mark)  # there may be one hole more than excerpts
    extractor = EvidenceExtractor(load_reranker(reranker), selector, splitter=UnitSplitter())
    whole = Candidate("text", 0, len(text), text, 0.0, "rank")
    excerpts = extractor.extract(question, [whole], lambda piece: mark).excerpts
    shown = _shown(text, excerpts)
    return Pruned(shown, excerpts, estimate_tokens(shown), before)


class UnitSplitter:
    """Splits text into sentences; a long one, of a log or JSON, at its records or lines."""

    name = "units-1"

    def split(self, text: str) -> list[Span]:
        """Return the spans, which cover the text."""
        return [part for span in default_sentence_splitter().split(text) for part in _units(text, span)]


def _units(text: str, span: Span) -> Iterator[Span]:
    start, end = span
    if end - start > _LONG:
        body = text[start:end]
        ends = [start + match.end() for match in _RECORD.finditer(body)]
        if len(ends) < _FEW:
            ends = [start + match.end() for match in _LINE.finditer(body)]
        for place in ends:
            if start < place < end:
                yield Span(start, place)
                start = place
    yield Span(start, end)


def _shown(text: str, excerpts: Sequence[Excerpt]) -> str:
    """The excerpts, in the order of the text, with a mark for each hole that has visible characters."""
    parts, end = [], 0
    for excerpt in excerpts:
        parts += [_hole(text, end, excerpt.start), text[excerpt.start : excerpt.end].strip("\r\n")]
        end = excerpt.end
    parts.append(_hole(text, end, len(text)))
    return "\n".join(part for part in parts if part)


def _hole(text: str, start: int, end: int) -> str:
    return _mark(start, end) if text[start:end].strip() else ""


def _mark(start: int, end: int) -> str:
    return f"[… {start}-{end}]"
