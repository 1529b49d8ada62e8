"""A query's terms, and how much of them a text covers."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby, pairwise

import numpy as np

from precise_rag.numerals import coarser, in_one_form
from precise_rag.stems import QUESTION_KINDS, QUESTION_WORDS, IdfTable, Words, idf, read_words
from precise_rag.structure.marks import without_tags
from precise_rag.types import FloatArray

Positions = dict[str, list[int]]
"""The query terms in a text, each with its positions, counted in words."""
_WINDOW = 16
"""Length of the window of `window_coverage`, in words."""
_ROUNDING = 1e-9
"""Two coverages that differ by less are the same, summed in another order."""
_PAIR_DISTANCE = 3
"""Words between two terms that still count as neighbours."""
_ASKS_NUMBER = re.compile(
    r"\b(when|how (many|much|old|long|far|often|large|tall)|what (year|date|time|percent\w*|age|number))\b"
)
_CODE = re.compile(r"[A-Za-z\d]+(?:(?:[-./:_]|(?<=\d),(?=\d{1,2}\b))[A-Za-z\d]+)*")
_ENTRY = re.compile(rf"\W{{0,20}}(?:v(?=\d))?({_CODE.pattern})(?![\w.,;'’-]| [^\W\d_])")
"""The beginning of an entry: a code or name that does not go on as a sentence does, "Covid-19 is"."""
_SIGNED = re.compile(
    r"(?<![^\s\"'`*|│(,])(?:[-%$@:#+/]{1,2}\w[\w-]*"
    r"|(?![.-]+\s)[!#-&*+./:;<=>?@\\^|~-]{1,3}[!#-&*+:;<=>@\\^|~-])(?=[\s\"'`*|│),.=;:?]|\Z)"
)
"""A name with a sign before it, %A, --all or -9, whose letters count as written; or an operator, <=>."""
_SIGNED_LINES = re.compile(rf"(?m)^[ \t]*+(?:[-*#]{{1,6}} )?[ \t\"'`*|│(]{{0,20}}({_SIGNED.pattern})")
_BEGINNING = 600
"""Characters of a text in HTML within which its first name is looked for."""
_COUNTS, _WORD = re.compile(r"\D*|\d|\d+(?:st|nd|rd|th|s)"), re.compile(r"\w+")
"""What is no code: a word without a digit, a single digit, an ordinal, a decade; and a word."""
_IDENTIFIER = re.compile(r"\b(?:[a-z]{2,60}[A-Z]\w{0,80}|[A-Za-z]{1,40}(?:_[A-Za-z]{1,40}){1,8})\b")
"""A name in a program: maxBytes, max_bytes."""
_RECORD = re.compile(
    r"""\|[^|\n]{1,200}\||["'][ ]?:[ ]|\t[^\t\n]{1,200}\t|<td\b|,[^,\s][^,\n]{0,100},\S"""
    r"|(?m:^[ \t-]{0,40}[\w.-]{1,60}: )"
)
"""A row of a table or CSV, or a value of JSON or YAML."""
_ASKS_PERSON = re.compile(QUESTION_KINDS["asks_who"])


@dataclass(frozen=True)
class QueryTerms:
    """The terms of a query with their rarity, and the kind of answer it asks for.

    rarity: idf of each term, in the order of the query. names: the terms written as a name or
    number. asks_number, asks_person: whether it asks for a number or date, or for a person.
    """

    rarity: Mapping[str, float]
    names: frozenset[str]
    asks_number: bool
    asks_person: bool

    @classmethod
    def of(cls, query: str, idf_table: IdfTable) -> "QueryTerms":
        """Read the terms of `query`. Words that only shape a question are left out if others remain."""
        words = read_words(query)
        terms = [s for s in words.stems if s not in QUESTION_WORDS] or words.stems
        marked = {s for s, is_name in zip(words.stems, words.marked, strict=True) if is_name}
        lower = query.lower()
        return cls(
            {term: idf(term, idf_table) for term in terms},
            frozenset(marked & set(terms)),
            bool(_ASKS_NUMBER.search(lower)),
            bool(_ASKS_PERSON.search(lower)),
        )

    @cached_property
    def total(self) -> float:
        """Sum of the rarity of all terms; 1 if that is 0."""
        return sum(self.rarity.values()) or 1.0

    @cached_property
    def rarest(self) -> float:
        """Rarity of the rarest term; 1 if that is 0."""
        return max(self.rarity.values(), default=0.0) or 1.0

    @cached_property
    def _pairs(self) -> dict[tuple[str, str], float]:
        """Neighbouring terms, with their rarity together."""
        return {(a, b): self.rarity[a] + self.rarity[b] for a, b in pairwise(self.rarity)}

    def among(self, texts: Sequence[Positions]) -> "QueryTerms":
        """Weigh each term by how few of these texts have it, too: one that all have tells none apart.

        The quarter of the texts that covers most of the query is not counted, as it may have been written to.
        """
        covered = [self.coverage(positions) for positions in texts]
        most = sorted(covered)[(3 * len(texts) - 1) // 4] + _ROUNDING
        usual = [positions for positions, share in zip(texts, covered, strict=True) if share <= most]
        holding = Counter(term for positions in usual for term in positions)
        n = len(usual) + 1
        rarity = {t: value * (1.0 - math.sqrt(holding[t] / n)) for t, value in self.rarity.items()}
        return replace(self, rarity=rarity)

    def positions(self, words: Words) -> Positions:
        """Find the query's terms in a text."""
        places: Positions = {}
        for position, stem in enumerate(words.stems):
            if stem in self.rarity:
                places.setdefault(stem, []).append(position)
        return places

    def coverage(self, terms: Iterable[str]) -> float:
        """Return the rarity of `terms` as a share of the whole query's, 0 to 1."""
        return sum(self.rarity[term] for term in terms) / self.total

    def window_coverage(self, positions: Positions) -> float:
        """Return the largest coverage within 16 words of the text."""
        seen = sorted((position, term) for term, several in positions.items() for position in several)
        best, first = 0.0, 0
        for last in range(len(seen)):
            while seen[last][0] - seen[first][0] >= _WINDOW:
                first += 1
            best = max(best, self.coverage({term for _, term in seen[first : last + 1]}))
        return best

    def pair_coverage(self, positions: Positions) -> float:
        """Return the share of neighbouring query terms that are close in the text; NaN without any."""
        if not self._pairs:
            return math.nan
        near = {
            term: {place + step for place in places for step in range(-_PAIR_DISTANCE, _PAIR_DISTANCE + 1)}
            for term, places in positions.items()
        }
        close = sum(
            rarity
            for (a, b), rarity in self._pairs.items()
            if not near.get(a, set()).isdisjoint(positions.get(b, ()))
        )
        return close / (sum(self._pairs.values()) or 1.0)

    def name_coverage(self, positions: Positions) -> float:
        """Return the share of the query's names and numbers that are in the text; NaN without any."""
        total = self.coverage(self.names)
        return self.coverage(self.names & positions.keys()) / total if total else math.nan

    def answer_type(self, words: Words) -> float:
        """Return 1 if the text holds a number or name of the kind asked for, else 0.

        The number or name must not be in the query. NaN if the query asks for neither.
        """
        if not (self.asks_number or self.asks_person):
            return math.nan
        return float(
            any(
                marked and stem[0].isdigit() == self.asks_number and stem not in self.rarity
                for stem, marked in zip(words.stems, words.marked, strict=True)
            )
        )


def alone_with_code(query: str, texts: Sequence[str]) -> FloatArray:
    """Return (n,) 1 for each text that alone holds a code or name of the query, else 0.

    A code is one such as E4266, TX-17 or maxBytes. A name counts in rows of tables and the like, and has
    several words: elsewhere much can be said of it without it.
    """
    asked, names = _codes(query), _names(query)
    holding = [asked & _codes_with_dates(text) if asked else set[str]() for text in texts]
    lines = [f" {' '.join(_WORD.findall(text.casefold()))} " if names else "" for text in texts]
    named = [{name for name in names if f" {name} " in line} for line in lines]
    counts = Counter(one for several in (*holding, *named) for one in several)
    told = (
        codes | (names if _RECORD.search(text) else set())
        for codes, names, text in zip(holding, named, texts, strict=True)
    )
    return np.array([any(counts[one] == 1 for one in several) for several in told], dtype=np.float32)


def begins_with_name(query: str, texts: Sequence[str]) -> FloatArray:
    """Return (n,) 1/k for each of k texts that begin with the same code of the query, as entries do.

    Where none does, a name with a sign, or an operator, may begin any line: a row of a short table.
    """
    query = in_one_form(query)
    asked = {one for one in _CODE.findall(query.casefold()) if not one.isalnum()} | _codes(query)
    signed = {*_SIGNED.findall(query)}  # "-a in kill-pane" is in the entry of kill-pane
    if not asked | signed:
        return np.zeros(len(texts), dtype=np.float32)
    texts = [in_one_form(without_tags(t[:_BEGINNING]) if t.lstrip()[:1] == "<" else t) for t in texts]
    firsts = [_ENTRY.match(text.casefold()) if asked else None for text in texts]
    begun = [{first[1]} & asked if first else set[str]() for first in firsts]
    for n_lines in (1, None) if signed else ():
        if not any(begun):
            lines = ("\n".join(text.strip().split("\n")[:n_lines]) for text in texts)
            begun = [{*_SIGNED_LINES.findall(several)} & signed for several in lines]
    counts = Counter(chain.from_iterable(begun))
    shares = [1 / min(map(counts.__getitem__, one), default=np.inf) for one in begun]
    return np.array(shares, dtype=np.float32)


def _names(query: str) -> set[str]:
    """Words with capital letters one after the other, but for the first word."""
    words = (" ".join(_WORD.findall(word)) for word in query.split()[1:])
    groups = (list(group) for is_name, group in groupby(words, lambda word: word[:1].isupper()) if is_name)
    return {" ".join(group).casefold() for group in groups if len(group) > 1}


def _codes(text: str) -> set[str]:
    codes = {code for code in _CODE.findall(in_one_form(text).casefold()) if not _COUNTS.fullmatch(code)}
    return codes.union(map(str.casefold, _IDENTIFIER.findall(text)))


def _codes_with_dates(text: str) -> set[str]:
    """The codes of a text, and for each day or time in it its day, month, and day of the year."""
    codes = _codes(text)
    return codes.union(*((code[: len("2021-05-03")], *parts) for code in codes if (parts := coarser(code))))
