"""Names in the query: those that nothing selected mentions, and what is selected of something else."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from precise_rag.stems import PRONOUNS, QUESTION_WORDS, read_words
from precise_rag.titles import joined_titles, titles_above
from precise_rag.types import Candidate, Titles

_MOST = 0.5
"""Where a greater share of the query's words looks like names, capitals mean nothing."""
_MOST_COMPARED = 100


def name_bearers(
    query: str, kept: Iterable[Candidate], others: Sequence[Candidate]
) -> Iterator[tuple[int, str]]:
    """Yield the rows of candidates that alone mention a name of the query, and the name as spelled there.

    A question that names two things often has evidence in two places, and the place of one of them looks
    improbable by itself. Of the candidates that mention a name which nothing kept does, the one with the
    most new words of the query is taken, then with the most words, then the likeliest. Names are words with
    a capital inside a sentence, but for "I", and numbers; a title is part of what its text mentions.

    query: may be empty.
    kept: nothing is yielded if it is empty.
    others: the candidates that are not kept, the likeliest first.
    """
    words = read_words(query)
    is_capital = [is_name for s, is_name in zip(*words, strict=True) if not s[0].isdigit()]
    if sum(is_capital) > _MOST * len(is_capital):
        return
    terms = frozenset(words.stems) - QUESTION_WORDS
    names = {s for s, is_name in zip(words.stems, words.marked, strict=True) if is_name} & terms - PRONOUNS
    mentioned = [_mentioned(candidate) for candidate in kept if names]
    if not mentioned:
        return
    names, missing = names.difference(*mentioned), terms.difference(*mentioned)
    asked = {row: _mentioned(candidate) & terms for row, candidate in enumerate(others) if names}
    while bearing := [row for row, there in asked.items() if there & names]:
        _, _, chosen = max((len(asked[row] & missing), len(asked[row]), -row) for row in bearing)
        there = asked.pop(-chosen)
        bears = there & names
        spelled = next((word for word in query.split() if bears & {*read_words(word).stems}), max(bears))
        yield -chosen, spelled.strip(".,;:?!()\"'“”‘’")
        names, missing = names - there, missing - there


def of_something_else(query: str, candidates: Sequence[Candidate]) -> Iterator[tuple[str, str]]:
    """Yield the ids of candidates that say the like of another, but of something else, each with that one's.

    "The shop opens at nine." below "city: Lyon", where the query names Lille, beside "The shop opens at ten."
    below "city: Lille": as many titles stand above both, half of the words of both are the same, apart from
    numbers, and the other has all words of the query that are here, and more of them, one at least above it.

    query: may be empty. candidates: the likeliest first; each is compared with the first 100.
    """
    terms = frozenset(read_words(query).stems) - QUESTION_WORDS
    told = [one for one in candidates if terms and titles_above(one)]
    said: dict[Titles, set[str]] = {}
    for one in told:
        said.setdefault(titles_above(one), set()).update(_mentioned(one) & terms)
    read = [(one.id, titles_above(one), {*filter(str.isalpha, read_words(one.text).stems)}) for one in told]
    for (key, titles, words), (other, above, others) in product(read, read[:_MOST_COMPARED]):
        if len(titles) == len(above) and said[titles] < said[above]:
            is_else = (said[above] - said[titles]).intersection(read_words(joined_titles(above)).stems)
            if is_else and 2 * len(words & others) >= len(words | others) > 0:
                yield key, other


def _mentioned(candidate: Candidate) -> frozenset[str]:
    above = read_words(joined_titles(titles_above(candidate))).stems
    return frozenset((*above, *read_words(candidate.text).stems))
