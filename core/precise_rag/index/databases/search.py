"""Searches in one state of a collection, scored as in HybridIndex.

Differs: before scores are added, each is scaled so that the best row of the pool has 1, and 0 is what the
worst rows of the collection have: no word, and by meaning 1.5 standard deviations below the mean of a random
sample. In HybridIndex the worst row of the pool has 0. So a row's score does not depend on how many others
are read. See `counted` for what is estimated in scores by words.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import numpy as np

from precise_rag.encoders.geometry import with_levels
from precise_rag.errors import EmptyIndexError
from precise_rag.filters.values import ID
from precise_rag.index.bm25 import idf
from precise_rag.index.databases.counted import bm25, having
from precise_rag.index.databases.view import FoundSentence, PostgresView
from precise_rag.index.hybrid import HybridSettings, weighted_scales
from precise_rag.index.ranking import draws, few_with, scaled, seeds_of
from precise_rag.index.sentence_index import SentenceQuery, chosen_rows
from precise_rag.index.view import rows_around, warn_of_unknown_fields
from precise_rag.index.words import code_numbers, word_numbers
from precise_rag.protocols import Encoder
from precise_rag.titles import read_titles
from precise_rag.types import Candidate, FloatArray, Span, Stretch

_SAMPLE = 1_000
"""Rows whose scores stand for those of all, to see whether the best one stands out."""
_LOWEST = 1.5
"""Standard deviations below the mean of the sample where the scale of the dense scores begins."""
_ROWS_FOR_ONE, _MOST_ROWS = 8, 1_000
"""Rows that are read by vector, and by words, for each candidate, and at most; the pool if it is larger."""


def find(
    view: PostgresView,
    asked: SentenceQuery,
    settings: HybridSettings,
    direction: FloatArray,
    encoder: Encoder,
) -> list[Candidate]:
    """Return the candidates of a search by a query's vector, `direction` (d,), best first."""
    query, top_k, wanted, returns = asked.text, asked.top_k, asked.filter, asked.returns
    if not (count := view.count()):
        raise EmptyIndexError("the index holds no text; add documents first")
    terms = np.unique(word_numbers(query, settings.stop_words))
    frequencies, n_rows = view.frequencies(terms)
    size = min(max(top_k, min(_ROWS_FOR_ONE * top_k, _MOST_ROWS), settings.pool), count)
    pool = view.pool(direction, terms, idf(frequencies, n_rows), size, wanted)
    if not len(pool.keys):
        if wanted is not None:
            warn_of_unknown_fields(wanted, ({ID} | view.fields()).__contains__)
        return []
    others, of_texts = view.sample(_SAMPLE, direction, wanted)
    if wanted is not None:
        _, of_texts = view.sample(_SAMPLE, direction, None)
    by_words, found = bm25(pool.counted, terms, frequencies, n_rows, of_texts, settings)
    fused = _fused(settings, pool.dense, by_words, found, others)
    if settings.adaptive:
        codes = (having(pool.counted, code) for code in code_numbers(query, settings.stop_words))
        fused += few_with(codes, len(fused))
    scores = {"dense": pool.dense, "bm25": by_words[0], "bm25_passage": by_words[1]}
    parts = with_levels(encoder, scores, direction)
    known: dict[tuple[str, int], int] = {}
    passages = [known.setdefault(key, len(known)) for key in zip(pool.doc_ids, pool.passages, strict=True)]
    drawn = draws(seeds_of(pool.doc_ids), pool.passages)
    chosen = chosen_rows(fused, np.array(passages), returns, top_k, drawn.__getitem__).tolist()
    sentences = view.read([pool.keys[i] for i in chosen])
    n_wide = {"sentence": 0, "mixed": 1, "passage": len(chosen)}[returns]
    ranges = [(row.doc_id, row.passage_start, row.passage_end) for row in sentences[:n_wide]]
    between = view.between(ranges, "start") if ranges else []
    rows = [*map(_joined, between), *sentences[n_wide:]]
    return [
        _candidate(row, float(fused[i]), {name: values[i] for name, values in parts.items()})
        for i, row in zip(chosen, rows, strict=True)
    ]


def around(view: PostgresView, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
    """Return the stretches of `sentences`; see `DatabaseIndex.neighbours`."""
    spans = {(c.doc_id, c.start, c.end) for c in sentences}
    starts = [(doc_id, start, start + 1) for doc_id, start, _ in sorted(spans)]
    begun = chain.from_iterable(view.between(starts, "start"))
    found = [row for row in begun if (row.doc_id, row.start, row.end) in spans]
    ranges = [
        (doc_id, first, end)
        for doc_id, of_document in groupby(found, key=lambda row: row.doc_id)
        for first, end in rows_around((row.place for row in of_document), 2**31 - 1, reach)
    ]
    stretches = view.between(ranges, "place") if ranges else []
    return [_stretch(rows) for rows in stretches if rows]


def _fused(
    settings: HybridSettings,
    dense: FloatArray,
    by_words: Sequence[FloatArray],
    found: Sequence[float],
    others: FloatArray,
) -> FloatArray:
    """(n,) scores of rows, by vector and by words together.

    dense: (n,) by vector. by_words: (n,) at each scale; found: see `words_found`.
    others: scores by vector of a sample of all rows.
    """
    widest = 1 if settings.surroundings is None else 2
    of_dense, of_words = settings.weights(others, float(dense.max()), found[widest])
    by_vector = scaled(dense, float(others.mean() - _LOWEST * others.std()))
    first, *wider = (scaled(scores, 0.0) for scores in by_words[: widest + 1])
    words = weighted_scales(settings.alpha, first, wider)
    return of_dense * by_vector + of_words * scaled(words, 0.0)


def _candidate(sentence: FoundSentence, score: float, scores: Mapping[str, Any]) -> Candidate:
    return Candidate(
        doc_id=sentence.doc_id,
        start=sentence.start,
        end=sentence.end,
        text=sentence.text[: sentence.end - sentence.start],
        score=score,
        score_scale="rank",
        n_tokens=sentence.n_tokens,
        passage=Span(sentence.passage_start, sentence.passage_end),
        scores={name: float(value) for name, value in scores.items()},
        metadata=json.loads(sentence.metadata),
        above=read_titles(sentence.above),
    )


def _stretch(rows: Sequence[FoundSentence]) -> Stretch:
    text = "".join(row.text for row in rows)[: rows[-1].end - rows[0].start]
    return Stretch(text, tuple(_candidate(row, 0.0, {}) for row in rows))


def _joined(rows: Sequence[FoundSentence]) -> FoundSentence:
    n_tokens = sum(row.n_tokens for row in rows)
    return rows[0]._replace(end=rows[-1].end, n_tokens=n_tokens, text="".join(row.text for row in rows))
