"""A long text, such as the result of a tool, cut down to what answers a question."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from precise_rag.checks import check_number, check_text
from precise_rag.evidence.extractor import EvidenceExtractor
from precise_rag.evidence.json_units import (
    Element,
    longest_string,
    parted,
    read_json,
    units_of,
    value_of,
    words_of,
    written,
)
from precise_rag.excerpts import excerpts_of
from precise_rag.protocols import Reranker
from precise_rag.rerank import calibrated, load_reranker, rerank
from precise_rag.selection import ProbabilitySelector, ratio_scores
from precise_rag.sentences.splitters import default_sentence_splitter
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Excerpt, FloatArray, ScoreScale, Selection, Span, check_query

_LONG, _FEW = 400, 2
"""Characters of a sentence that is looked at again, and records that make it a list of them."""
_UNIT = 32
"""Most tokens of an element of JSON that is scored as one."""
_LEAST, _AROUND = 32, 40
"""Fewest tokens of a result, and what the rest of a JSON text around its longest string may have."""
_REPEATED, _SAME_SHAPE = 10, 3
"""So many units that differ in numbers only are a log's: of them so few are scored, beside those with a
number of the question."""
_RECORD = re.compile(r"\},?\s*(?=\{)")
_LINE = re.compile(r"\n+")
_NUMBER = re.compile(r"\d+")


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
    check_number("max_tokens", max_tokens, least=_LEAST, whole=True)
    before = estimate_tokens(text)
    if before <= max_tokens:
        return Pruned(text, (), before, before)
    tree = read_json(text, _UNIT, UnitSplitter().split)
    string = None if tree is None else longest_string(text, tree)
    if tree is not None and string is not None and string.parts:
        shown, excerpts = _pruned_string(text, tree, string, question, max_tokens, reranker)
        return Pruned(shown, excerpts, estimate_tokens(shown), before)
    mark = estimate_tokens(_mark(len(text), len(text)))
    selector = ProbabilitySelector(max_tokens=max_tokens - mark)  # there may be one hole more than excerpts
    units = [] if tree is None else list(units_of(tree))
    listed = _ListedUnits([words_of(text, unit) for unit in units])
    read, splitter = (text, UnitSplitter()) if tree is None else (listed.text, listed)
    extractor = EvidenceExtractor(_ByShape(load_reranker(reranker)), selector, splitter=splitter)
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


class _ByShape:
    """A calibrated reranker that scores a few of many units that differ in their numbers only.

    A log repeats its lines with other numbers. The others of a shape have the probability 0.
    """

    score_scale: ScoreScale = "probability"
    is_calibrated = True

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = calibrated(reranker)
        self.name = self._reranker.name

    @property
    def reads_around(self) -> bool:
        """Whether the reranker reads the text around candidates; see `with_text_around`."""
        return getattr(self._reranker, "reads_around", False)

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) probabilities."""
        asked = set(_NUMBER.findall(query))
        shapes = [_NUMBER.sub("0", candidate.text) for candidate in candidates]
        sizes, seen = Counter(shapes), Counter[str]()
        rows = []
        for row, (candidate, shape) in enumerate(zip(candidates, shapes, strict=True)):
            seen[shape] += 1
            is_repeated = sizes[shape] >= _REPEATED and seen[shape] > _SAME_SHAPE
            if not is_repeated or asked.intersection(_NUMBER.findall(candidate.text)):
                rows.append(row)
        ranked = {c.id: c for c in rerank(query, [candidates[row] for row in rows], self._reranker)}
        scores = np.zeros(len(candidates), dtype=np.float32)
        scores[rows] = ratio_scores([ranked[candidates[row].id] for row in rows])
        return scores


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
        units = units[
            : -max(1, len(units) // 50)
        ]  # of very many more at once: each look costs the whole text


def _pruned_string(
    text: str, tree: Element, string: Element, question: str, max_tokens: int, reranker: Any
) -> tuple[str, tuple[Excerpt, ...]]:
    """JSON that is mostly one string, such as a fetched page, whose text is cut as a text of its own."""
    value = value_of(text, string)
    escaped = estimate_tokens(text[string.start : string.end]) / max(1, estimate_tokens(value))
    pruned = prune(value, question, max(_LEAST, round((max_tokens - _AROUND) / escaped)), reranker=reranker)
    excerpts = pruned.excerpts
    if pruned.text == value:
        whole = Candidate("text", 0, len(value), value, 1.0, "probability")
        excerpts = excerpts_of(Selection.of([(whole, True, "it fits")]))
    tree, places = parted(text, tree, string, [Span(one.start, one.end) for one in excerpts])
    placed = [
        replace(one, start=start, end=end, text=text[start:end])
        for one, (start, end) in zip(excerpts, places, strict=True)
    ]
    return _shown_json(text, tree, sorted(placed, key=lambda one: -one.score), max_tokens)


def _hole(text: str, start: int, end: int) -> str:
    return _mark(start, end) if text[start:end].strip() else ""


def _mark(start: int, end: int) -> str:
    return f"[… {start}-{end}]"
