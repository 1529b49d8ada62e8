"""What rerankers get of candidates: titles above, text around, cosines, and long texts by their sentences."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from precise_rag.encoded import count_tokens, encode_documents, encode_queries
from precise_rag.encoders.geometry import with_levels
from precise_rag.encoders.load import default_encoder
from precise_rag.errors import InputError
from precise_rag.protocols import Neighbours, Reranker
from precise_rag.rerank.query_terms import QueryTerms
from precise_rag.sentences import load_sentence_splitter
from precise_rag.sentences.trimming import without_markup
from precise_rag.stems import LONG_NAME, IdfTable, initials, read_words
from precise_rag.titles import joined_titles, titles_above
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, FloatArray
from precise_rag.vectors import dots

_LEAST_SHARE = 0.3
"""Share of the query's rarity that the words above must add. With less, a title about the topic of all its
document's sentences moves them all."""
_TITLES = 200
"""Characters of what stands above that are read, the last ones: a network reads 256 tokens in all."""
_AROUND = 160
"""Characters on each side, at most; the network reads some twenty tokens of them."""
_REACH = 2
"""Sentences on each side that are asked for."""
_COMPARED_TOKENS = 20_000
"""Those of 400 sentences, and of fewer pieces of what has no sentences, such as minified code."""


def with_headings(query: str, candidates: Sequence[Candidate], idf_table: IdfTable) -> list[Candidate]:
    """Put the titles above a candidate before its text, if the query needs them.

    It is needed if it has words of the query that the text lacks, with at least 0.3 of the rarity of all of
    them: "How often is the M-7 serviced?" and "Change the oil every month.", under the title "Pump M-7".
    Returns the candidates in their order.
    """
    terms = QueryTerms.of(query, idf_table)
    above = [joined_titles(titles_above(candidate))[-_TITLES:] for candidate in candidates]
    named = {text: terms.positions(read_words(text)).keys() for text in set(above)}
    return [
        replace(one, text=f"{title}: {one.text}")
        if terms.coverage(named[title]) > _LEAST_SHARE  # first, as it costs little
        and terms.coverage(named[title] - terms.positions(read_words(one.text)).keys()) > _LEAST_SHARE
        else one
        for one, title in zip(candidates, above, strict=True)
    ]


def with_names_as_asked(query: str, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Write the query's names before their initials: "WHO" is read as "World Health Organization (WHO)".

    Returns the candidates in their order.
    """
    for name in LONG_NAME.findall(query):
        short = re.compile(rf"\b{initials(name)}\b(?!\))")
        both = f"{name} ({initials(name)})"
        candidates = [replace(one, text=short.sub(both, one.text)) for one in candidates]
    return candidates


def with_cosines(query: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Give candidates that no search has compared with the query their cosines, by the default encoder.

    They are in `scores`, as "dense" and "core". The encoder reads the first ones, up to 20,000 tokens.
    Returns those that it has read, in their order; at least one, if any.
    Raises ModelError if the encoder is damaged.
    """
    encoder = default_encoder()
    vector = encode_queries(encoder, [query])[0]
    texts = [without_markup(candidate.text) for candidate in candidates]
    n_read = int(np.sum(np.cumsum(count_tokens(encoder, texts)) <= _COMPARED_TOKENS))
    texts = texts[: max(1, n_read)]
    cosines = dots(encode_documents(encoder, texts), vector)
    levels = with_levels(encoder, {"dense": cosines, "core": cosines}, vector)
    return [
        replace(one, scores={**one.scores, **{name: float(column[row]) for name, column in levels.items()}})
        for row, one in enumerate(candidates[: len(texts)])
    ]


def with_text_around(candidates: Sequence[Candidate], source: Neighbours) -> list[Candidate]:
    """Give candidates the text around them, as `before` and `after`.

    "He signed it there in 1791." says little alone, and enough after "Washington came to Philadelphia."
    source: knows the text, such as an index of sentences; candidates that it does not know have none.
    Returns the candidates in their order.
    """
    around = {}
    for text, sentences in source.neighbours(candidates, _REACH):
        for sentence in sentences:
            start = sentence.start - sentences[0].start
            around[sentence.id] = text_around(text, start, start + len(sentence.text))
    known = ((one, *around.get(one.id, ("", ""))) for one in candidates)
    return [replace(one, before=before, after=after) for one, before, after in known]


def text_around(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the words of a text just before `start` and just after `end`, at most 160 characters of each."""
    first, last = max(0, start - _AROUND), end + _AROUND
    before, after = text[first:start], text[end:last]
    if first:
        before = before.partition(" ")[2]
    if last < len(text):
        after = after.rpartition(" ")[0]
    return before, after


def score_texts(query: str, candidates: Sequence[Candidate], reranker: Reranker) -> FloatArray:
    """Return (n,) scores of candidates of any length.

    If the reranker has `longest_text`, each text of more tokens than that, estimated, is scored by its
    sentences, and has the score of the best one. Short texts are scored whole, beside those sentences.
    Raises InputError if there is not one score for each of them.
    """
    longest = getattr(reranker, "longest_text", None)
    most = np.inf if longest is None else longest
    is_long = [len(c.text) > most and estimate_tokens(c.text) > most for c in candidates]
    parts: list[Candidate] = []
    firsts = []
    for candidate, split in zip(candidates, is_long, strict=True):
        firsts.append(len(parts))
        parts += _sentences(candidate) if split else [candidate]
    given = reranker.score(query, parts)
    n_scores = len(given) if hasattr(given, "__len__") else type(given).__name__
    if n_scores != len(parts):
        raise InputError(
            f"reranker {reranker.name!r} must return one score per candidate, in their order; "
            f"got {n_scores} for {len(parts)} candidates"
        )
    return np.maximum.reduceat(np.asarray(given), firsts) if any(is_long) else given


def _sentences(text: Candidate) -> list[Candidate]:
    """The sentences of a text, without the retrieval scores, which say little about each; at least one."""
    sentences = []
    for start, end in load_sentence_splitter().split(text.text):
        sentence = text.text[start:end]
        if sentence.strip():
            before, after = text_around(text.text, start, end)
            alone = replace(text, text=sentence, scores={}, before=before, after=after)
            sentences.append(replace(alone, start=text.start + start, end=text.start + end))
    return sentences or [text]
