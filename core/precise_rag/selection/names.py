"""Names in the query that nothing selected mentions."""

from collections.abc import Iterable, Iterator, Sequence

from precise_rag.stems import QUESTION_WORDS, read_words
from precise_rag.titles import joined_titles, titles_above
from precise_rag.types import Candidate

_MOST = 0.5
"""Where a greater share of the query's words looks like names, capitals mean nothing."""


def name_bearers(
    query: str, kept: Iterable[Candidate], others: Sequence[Candidate]
) -> Iterator[tuple[int, str]]:
    """Yield the rows of candidates that alone mention a name of the query, and the name as spelled there.

    A question that names two things often has evidence in two places, and the place of one of them looks
    improbable by itself. Of the candidates that mention a name which nothing kept does, the one with the
    most new words of the query is taken, then the likeliest. Names are words with a capital inside a
    sentence, and numbers; a title is part of what its text mentions.

    query: may be empty.
    kept: nothing is yielded if it is empty.
    others: the candidates that are not kept, the likeliest first.
    """
    words = read_words(query)
    if sum(words.marked) > _MOST * len(words.stems):
        return
    terms = frozenset(words.stems) - QUESTION_WORDS
    names = {s for s, is_name in zip(words.stems, words.marked, strict=True) if is_name} & terms
    mentioned = [_mentioned(candidate) for candidate in kept if names]
    if not mentioned:
        return
    names, terms = names.difference(*mentioned), terms.difference(*mentioned)
    new = {row: _mentioned(candidate) & terms for row, candidate in enumerate(others) if names}
    while bearing := [row for row, there in new.items() if there & names]:
        chosen = max(bearing, key=lambda row: len(new[row]))
        there = new.pop(chosen)
        spelled = next(word for word in query.split() if there & names & set(read_words(word).stems))
        yield chosen, spelled.strip(".,;:?!()\"'“”‘’")
        names = names - there
        new = {row: more - there for row, more in new.items()}


def _mentioned(candidate: Candidate) -> frozenset[str]:
    above = read_words(joined_titles(titles_above(candidate))).stems
    return frozenset((*above, *read_words(candidate.text).stems))
