"""A long text, such as the result of a tool, cut down to what answers a question."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from precise_rag.checks import check_number, check_text
from precise_rag.evidence.extractor import EvidenceExtractor
from precise_rag.evidence.json_units import Element, read_json, units_of, words_of, written
from precise_rag.rerank import load_reranker
from precise_rag.selection import ProbabilitySelector
from precise_rag.sentences.splitters import default_sentence_splitter
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Excerpt, Span, check_query

_LONG, _FEW = 400, 2
"""Characters of a sentence that is looked at again, and records that make it a list of them."""
_LEAST_UNIT, _UNITS = 16, 10
"""Fewest tokens of an element of JSON that is looked into, and how many elements should fit at least."""
_RECORD = re.compile(r"\},?\s*(?=\{)")
_LINE = re.compile(r"\n+")


class Pruned(NamedTuple):
    """What is left of a text.

    text: the excerpts in their order. "[… 120-3400]" stands for the characters 120 to 3400 of the whole
        text, which are left out. A text that fits is whole. JSON and JSON lines are cut at the bounds of
        their elements and stay JSON: the mark is then an element of a list, or the value of the key "…".
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
    tree = read_json(text, max(_LEAST_UNIT, max_tokens // _UNITS), UnitSplitter().split)
    units = [] if tree is None else list(units_of(tree))
    listed = _ListedUnits([words_of(text, unit) for unit in units])
    read, splitter = (text, UnitSplitter()) if tree is None else (listed.text, listed)
    extractor = EvidenceExtractor(load_reranker(reranker), selector, splitter=splitter)
    whole = Candidate("text", 0, len(read), read, 0.0, "rank")
    excerpts = extractor.extract(question, [whole], lambda piece: mark).excerpts
    if tree is None:
        shown = _shown(text, excerpts)
    else:
        shown, excerpts = _shown_json(text, tree, listed.placed(text, units, excerpts), max_tokens)
    return Pruned(shown, excerpts, estimate_tokens(shown), before)


class UnitSplitter:
    """Splits text into sentences; a long one, of a log or JSON, at its records or lines."""

    name = "units-1"

    def split(self, text: str) -> list[Span]:
        """Return the spans, which cover the text."""
        return [part for span in default_sentence_splitter().split(text) for part in _units(text, span)]


class _ListedUnits:
    """Splits a text of given units, one a line, into them. text: that text."""

    name = "listed-1"

    def __init__(self, units: Sequence[str]) -> None:
        self.text = "".join(f"{unit}\n" for unit in units)
        ends = list(accumulate(len(unit) + 1 for unit in units))
        self.spans = [Span(start, end) for start, end in pairwise([0, *ends])]

    def split(self, text: str) -> list[Span]:
        """Return the spans of the units."""
        return list(self.spans)

    def placed(self, whole: str, units: Sequence[Element], excerpts: Sequence[Excerpt]) -> list[Excerpt]:
        """Return the units that the excerpts hold, at their places in the whole text, best first."""
        starts = [span.start for span in self.spans]
        rows = {
            bisect_right(starts, decision.candidate.start) - 1: (decision, excerpt)
            for excerpt in excerpts
            for decision in excerpt.sentences
        }
        return [
            replace(
                excerpt,
                start=units[row].start,
                end=units[row].end,
                text=whole[units[row].start : units[row].end],
                score=decision.candidate.score,
                sentences=(decision,),
            )
            for row, (decision, excerpt) in sorted(rows.items(), key=lambda item: item[1][0].rank)
        ]


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


def _shown_json(
    text: str, tree: Element, units: list[Excerpt], max_tokens: int
) -> tuple[str, tuple[Excerpt, ...]]:
    """The best of the units that fit, as JSON, and they in the order of the text."""
    while True:
        shown = written(text, tree, {Span(one.start, one.end) for one in units}, _mark)
        if not units or estimate_tokens(shown) <= max_tokens:
            return shown, tuple(sorted(units, key=lambda one: one.start))
        units = units[:-1]


def _hole(text: str, start: int, end: int) -> str:
    return _mark(start, end) if text[start:end].strip() else ""


def _mark(start: int, end: int) -> str:
    return f"[… {start}-{end}]"
