"""What a reranker reads before a candidate's text: the title and headings above it, where they are needed."""

from collections.abc import Sequence, Set
from dataclasses import replace

from precise_rag.rerank.query_terms import QueryTerms
from precise_rag.stems import IdfTable, read_words
from precise_rag.titles import joined_titles, titles_above
from precise_rag.types import Candidate

_LEAST_SHARE = 0.3
"""Share of the query's rarity that the words above must add. With less, a title about the topic of all its
document's sentences moves them all."""
_LONGEST = 200
"""Characters of what stands above that are read, the last ones: a network reads 256 tokens in all."""


def with_headings(query: str, candidates: Sequence[Candidate], idf_table: IdfTable) -> list[Candidate]:
    """Put the titles above a candidate before its text, if the query needs them.

    It is needed if it has words of the query that the text lacks, with at least 0.3 of the rarity of all of
    them: "How often is the M-7 serviced?" and "Change the oil every month.", under the title "Pump M-7".
    What stands above are the titles of `precise_rag.titles`.
    Returns the candidates in their order.
    """
    terms = QueryTerms.of(query, idf_table)
    above = [joined_titles(titles_above(candidate))[-_LONGEST:] for candidate in candidates]
    named = {text: terms.positions(read_words(text)).keys() for text in set(above)}
    return [
        replace(candidate, text=f"{title}: {candidate.text}")
        if _adds(terms, named[title], candidate.text)
        else candidate
        for candidate, title in zip(candidates, above, strict=True)
    ]


def _adds(terms: QueryTerms, named: Set[str], text: str) -> bool:
    """Whether a heading with these terms of the query adds enough to a text."""
    if terms.coverage(named) <= _LEAST_SHARE:
        return False
    return terms.coverage(named - terms.positions(read_words(text)).keys()) > _LEAST_SHARE
