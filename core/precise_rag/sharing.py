"""Who gets the places of what is read next: nobody takes them all while others wait.

Anybody who writes a document decides how often it says the words of a question. So a text that repeats
another takes no place. One document, or one group of near-copies, gets at most three quarters of the
places. What is said again and again, see `with_insistent`, gets at most a quarter of them together, and each
of its n documents at most 3/(4n) of that quarter. And every fourth place goes to a document and a group that
have none yet. If no one else waits, the order alone decides.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import product
from types import MappingProxyType
from typing import NamedTuple
from zlib import crc32

import numpy as np

from precise_rag._memory import remembers
from precise_rag.stems import QUESTION_WORDS, read_words, with_parted_words
from precise_rag.titles import joined_titles, titles_above
from precise_rag.types import INSISTENT, Candidate, Selection

_BANDS, _ROWS = 4, 5
"""Near-copies agree in at least one of so many samples of so many words: of two texts with nine tenths of
their words in common 97 % do, with four fifths 80 %, with half 12 %, with a third 2 %."""
_FEWEST = 4
"""Words that a question has at least, for texts with all of them to be alike."""
_MOST_EQUAL, _LONGEST_EQUAL = 5, 200
"""Titles below which an equal text of so many characters at most is not a repetition."""
_AGAIN = 5
"""Times from which on something is said again and again."""
_LOOK_ALIKE = str.maketrans(
    "АВЕКМНОРСТУХІЈЅасԁеһіјӏорԛѕԝхуΑΒΕΖΗΙΚΜΝΟΡΤΥΧαινορυχ",
    "ABEKMHOPCTYXIJSacdehijlopqswxyABEZHIKMNOPTYXainopux",
)
_PRIME = (1 << 31) - 1
_DRAW = np.random.default_rng(0)
_FACTORS, _SHIFTS = _DRAW.integers(1, _PRIME, (2, _BANDS * _ROWS, 1), dtype=np.int64)


class Places(NamedTuple):
    """Candidates with a place, and why the others have none.

    selection: a decision for each candidate.
    repeats: the id of what each repeated candidate repeats, by its own id.
    is_shared: see `in_turns`; if not, others may be found that should have a place.
    full: ids of the documents that have as many different texts here as they may have places.
    """

    selection: Selection = Selection()
    repeats: Mapping[str, str] = MappingProxyType({})
    is_shared: bool = True
    full: tuple[str, ...] = ()


def share_places(query: str, candidates: Sequence[Candidate], n_places: int) -> Places:
    """Decide which candidates are read next.

    query: what they were found for; texts under headings with other words of it do not repeat each other.
    candidates: best first.
    n_places: how many are read.
    """
    first: dict[tuple[str, frozenset[str]], str] = {}
    originals = [first.setdefault((_wording(c.text), _asked_above(query, c)), c.id) for c in candidates]
    repeats = {c.id: original for c, original in zip(candidates, originals, strict=True) if original != c.id}
    rest = [candidate for candidate in candidates if candidate.id not in repeats]
    rows, is_shared = in_turns(rest, n_places)
    chosen, last = {rest[row].id for row in rows}, max(rows, default=-1)
    reasons = {key: f"repeats {original}" for key, original in repeats.items()}
    no_share = f"its document, or texts like it, had their share of the {n_places} places"
    for row, candidate in enumerate(rest):
        missed = no_share if row < last else f"not among the best {n_places}"
        reasons[candidate.id] = "candidate" if candidate.id in chosen else missed
    counts = Counter(candidate.doc_id for candidate in rest)
    full = tuple(doc_id for doc_id, n in counts.items() if n >= share_of(n_places))
    selection = Selection.of((c, c.id in chosen, reasons[c.id]) for c in candidates)
    return Places(selection, repeats, is_shared, full)


def may_be_of_one_thing(one: Candidate, other: Candidate) -> bool:
    """Whether the titles above two candidates do not tell apart what they speak of.

    In parts of texts that overlap, titles may be missing above one of them: they are two documents then.
    """
    titles, others = {*titles_above(one)}, {*titles_above(other)}
    return titles == others or (one.doc_id != other.doc_id and (titles <= others or others <= titles))


class Said:
    """What was said so far, and of what: "The lift goes to all floors." of five branches."""

    def __init__(self) -> None:
        self._said: dict[str, list[Candidate]] = {}

    def before(self, candidate: Candidate) -> str:
        """Return the id of what a candidate repeats; "" if it is new, or said of something else."""
        text = _wording(candidate.text)
        said = self._said.setdefault(text, [])
        same = (one.id for one in said if may_be_of_one_thing(one, candidate))
        is_full = len(said) >= (_MOST_EQUAL if len(text) <= _LONGEST_EQUAL else 1)
        if repeated := next(same, said[0].id if is_full else ""):
            return repeated
        said.append(candidate)
        return ""


def with_insistent(query: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return what was found, with the entry INSISTENT in the scores of what is said again and again.

    Those are near-copies, below headings with the same words of the query; texts that have all words of the
    query, which they were found for, if hardly anything else was found in their document: evidence has the
    words, too; and all of a document of which half is said again and again.
    """
    n_found = Counter(c.doc_id for c in candidates)
    groups = {c.id: {*product(_groups(c.text), [_asked_above(query, c)])} for c in candidates}
    whole = [c for c in candidates if _has_all_words(query, c)]
    n_whole = Counter(c.doc_id for c in whole)
    for c in whole:
        if n_whole[c.doc_id] >= min(_AGAIN, n_found[c.doc_id] / 2):
            groups[c.id].add(("question", frozenset()))
    counts = Counter(group for several in groups.values() for group in several)
    again = {c.id for c in candidates if any(counts[group] >= _AGAIN for group in groups[c.id])}
    n_again = Counter(c.doc_id for c in candidates if c.id in again)
    mostly = {doc_id for doc_id, n in n_again.items() if n >= max(_AGAIN, n_found[doc_id] / 2)}
    scores = {INSISTENT: float(len(n_again))}
    return [
        replace(c, scores={**c.scores, **scores}) if c.id in again or c.doc_id in mostly else c
        for c in candidates
    ]


def _has_all_words(query: str, candidate: Candidate) -> bool:
    """Whether a candidate has all words of the query, in itself or above; not if these are few."""
    asked = _asked_words(query)
    if len(asked) < _FEWEST:
        return False
    titles = joined_titles(titles_above(candidate))
    missing = asked.difference(read_words(plain_text(candidate.text)).stems)
    return missing.issubset(read_words(plain_text(titles)).stems)


@lru_cache(16)
def _asked_words(query: str) -> frozenset[str]:
    """The stems of the query's words that name its subject."""
    return frozenset(read_words(query).stems) - QUESTION_WORDS


def _asked_above(query: str, candidate: Candidate) -> frozenset[str]:
    """The words of the query that are in the titles above a candidate."""
    return _asked_words(query).intersection(read_words(joined_titles(titles_above(candidate))).stems)


def in_turns(candidates: Sequence[Candidate], n_places: int) -> tuple[list[int], bool]:
    """Return the rows of the candidates, best first, that have a place, in the order in which they got it.

    And whether every place was taken, and an eighth of them by documents and groups that had none yet.
    """
    owners = cache(lambda row: _owners(candidates[row]))
    taken: dict[int, None] = {}
    counts: Counter[Hashable] = Counter()

    def below(share: float) -> Iterator[int]:
        """The rows whose owners have less than they may have of a share when their turn comes."""
        for row in range(len(candidates)):
            if row not in taken and all(counts[owner] * n < share for owner, n in owners(row).items()):
                yield row

    new, within_share, rest = below(1), below(share_of(n_places)), below(math.inf)
    n_new = 0
    while len(taken) < min(n_places, len(candidates)):
        row = next(new, None) if len(taken) % 4 == 3 else None
        n_new += row is not None
        row = next(within_share, None) if row is None else row
        row = next(rest) if row is None else row
        taken[row] = None
        counts.update(owners(row).keys())
    enough = min(n_places // 4, max(1, n_places // 8))
    return list(taken), len(taken) == n_places and n_new >= enough


def share_of(n_places: int) -> int:
    """Return how many of the places go to one document at most while others wait."""
    return max(1, 3 * n_places // 4)


@remembers()
def plain_text(text: str) -> str:
    """Return a text without what readers overlook: case, forms of letters, white space, invisible signs.

    Cyrillic and Greek letters that look like Latin ones are these.
    """
    text = with_parted_words(text)
    if text.isascii():
        return " ".join(text.casefold().split())
    folded = unicodedata.normalize("NFKC", text).translate(_LOOK_ALIKE).casefold()
    return " ".join("".join(c for c in folded if unicodedata.category(c) != "Cf").split())


def _wording(text: str) -> str:
    """The plain text, but of a single word as it is written: -V and -v, %M and %m are two options."""
    plain = plain_text(text)
    return text.strip() if plain.isascii() and " " not in plain else plain


def _owners(candidate: Candidate) -> dict[Hashable, int]:
    """Who takes a place by a candidate: its document, its near-copies, and what is said again and again.

    Each has the number n of the nth of a share that it may have.
    """
    owners: dict[Hashable, int] = dict.fromkeys((candidate.doc_id, *_groups(candidate.text)), 1)
    if n_documents := int(candidate.scores.get(INSISTENT, 0)):
        owners |= {INSISTENT: 3, (INSISTENT, candidate.doc_id): 4 * n_documents}
    return owners


@remembers()
def _groups(text: str) -> tuple[Hashable, ...]:
    """The groups of near-copies that a text is in: samples of its words (minhash)."""
    words = {crc32(s.encode("utf-8", "surrogatepass")) for s in read_words(plain_text(text)).stems}
    if not words:
        return ()
    hashed = np.fromiter(words, np.int64, len(words)) % _PRIME
    least = ((hashed * _FACTORS + _SHIFTS) % _PRIME).min(axis=1).reshape(_BANDS, _ROWS)
    return tuple((band, *row) for band, row in enumerate(least.tolist()))
