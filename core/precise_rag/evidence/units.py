"""The units that `prune` keeps or leaves out: sentences, records and lines; and the parts of a unit."""

import re
from collections.abc import Collection
from itertools import pairwise

from precise_rag.sentences.lines import are_units
from precise_rag.sentences.splitters import load_sentence_splitter, split_structured
from precise_rag.structure import read_structure
from precise_rag.structure.base64_runs import is_base64
from precise_rag.structure.marks import STOPS, after_space
from precise_rag.structure.tables import CELL, table_rows
from precise_rag.tokens import Counts
from precise_rag.types import Span

_LONG, _LONG_VALUE = 120, 600
_LONG_LINES, _WHOLE_TOKENS = 0.8, 120
_BREAK = re.compile(
    r"\\n|(?<=[\"\d\]}]),\s*\n|[\]}],\s*(?=[\[{\"'])|\),\s*(?=\([\"'\d])|;\s+(?=[\w.-]{1,40}=)"
    r"|</((?!t[dh]\b|[abiqsu]\b|code\b|em\b|kbd\b|span\b|strong\b|su[bp]\b|var\b)\w{1,40})>\s*(?=<\1\b)"
)
"""Where sentences of more than 120 characters, or values of more than 600, are cut: between the records of
SQL, XML (not the cells and words of HTML), settings, or JSON that is in another text."""
_LINE = re.compile(r"\n")
"""Where those are cut that have more than this share of the limit, and more tokens than most records."""
_PARTS = (
    (_LINE, 0),
    (re.compile(r"""[{\[,]\s*+(?=["'][^"'\n]{1,80}["']\s?:)|</\w{1,40}>\s*+"""), 0),
    (CELL, 60),
    (re.compile(rf"(?:[.!?](?<=\w\w.)[\"'”’»)]? +(?=[^a-z])|[{''.join(STOPS[4:])}][」』”’）)]? *)"), 60),
    (re.compile(r"[^\n]{20}[^,;:，、；：。፣፤،؛–—\n]{0,60}(?:[,;:–—]\s+|[，、；：。፣፤،؛])"), 100),
    (re.compile(r"[^\n]{20}\S{0,20}\s*+"), 120),
)
"""Where a unit that does not fit is cut: at lines, fields, cells, ends of sentences and clauses, or words."""


def units_of(text: str, max_tokens: int, count: Counts) -> list[Span]:
    """Split text into sentences; a long one between its records, one as long as the limit at its lines.

    max_tokens: the limit. count: counts its tokens. Returns the spans, which cover the text.
    """
    limit = max(_LONG_LINES * max_tokens, _WHOLE_TOKENS)
    structure = read_structure(text)
    spans = split_structured(text, structure, load_sentence_splitter())
    longest = _LONG_VALUE if structure.format in ("data", "source") else _LONG
    spans = [part for span in spans for part in _cut_at(_BREAK, text, span, longest)]
    long = [span for span in spans if span.end - span.start > limit]  # a token has a character
    many = [span for span in long if not is_base64(text[slice(*span)])]
    sizes = count([text[start:end] for start, end in many])
    big = {span for span, size in zip(many, sizes, strict=True) if size > limit}
    tables = (block for block in structure.blocks if big and block.kind == "table")
    rows = {row for table in tables for row in table_rows(text, *table[:2]).starts}
    return [p for one in spans for p in (_cut_at(_LINE, text, one, 0, rows) if one in big else [one])]


def is_prose(text: str) -> bool:
    """Check whether a unit has several lines, but no items, rows or code, and none stands for itself."""
    structure = read_structure(text)
    has_lines = any(block.kind in ("item", "table", "code") for block in structure.blocks)
    lines = [words for line in text.split("\n") if (words := line.strip())]
    has_lines |= structure.format in ("data", "source") or are_units(lines)
    return len(lines) > 1 and not has_lines


def parts_of(text: str) -> list[Span]:
    """Split a unit that does not fit: into lines but of prose, fields, sentences; then clauses and words."""
    spans = [Span(0, len(text))]
    for pattern, longest in _PARTS[is_prose(text) :]:
        spans = [part for span in spans for part in _cut_at(pattern, text, span, longest)]
    return spans


def _cut_at(at: re.Pattern[str], text: str, part: Span, most: int, rows: Collection[int] = ()) -> list[Span]:
    """A part, cut after each match if it is longer than `most`: only where rows start, and never in a row."""
    places = [found.end() for found in at.finditer(text, *part)] if part.end - part.start > most else []
    places = [one for one in places if after_space(text, one) in rows] or places * (part.start not in rows)
    return [*map(Span._make, pairwise(dict.fromkeys([part.start, *places, part.end])))]
