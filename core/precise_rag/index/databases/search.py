"""Searches in one state of a collection, scored as in HybridIndex.

Differs: before scores are added, each is scaled so that the best row of the pool has 1, and 0 is what the
worst rows of the collection have: no word, and by meaning 1.5 standard deviations below the mean of a random
sample. In HybridIndex the worst row of the pool has 0. So a row's score does not depend on how many others
are read. See `counted` for what is estimated in scores by words.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from precise_rag.encoders.geometry import Geometry
from precise_rag.errors import EmptyIndexError
from precise_rag.filters import Filter
from precise_rag.filters.values import ID
from precise_rag.index.arrays.postings import idf
from precise_rag.index.arrays.top import top_rows
from precise_rag.index.arrays.words import word_numbers
from precise_rag.index.databases.counted import Usual, bm25, usual
from precise_rag.index.databases.postgres.view import FoundSentence, Pool, PostgresView
from precise_rag.index.hybrid import HybridSettings, adaptive_weight, weighted_scales
from precise_rag.index.rows.matching import warn_of_unknown_field
from precise_rag.index.rows.neighbours import rows_around
from precise_rag.index.sentence_scheme import Returns
from precise_rag.index.sentence_search import SentenceQuery
from precise_rag.titles import read_titles
from precise_rag.types import Candidate, FloatArray, ScoreScale, Stretch
from precise_rag.vectors import dots

_SAMPLE = 1_000
"""Rows whose scores stand for those of all, to see whether the best one stands out."""
_EXACT_UP_TO = 5_000
"""Up to this many rows the sample is read for each search; above, again when the number has changed."""
_LOWEST = 1.5
"""Standard deviations below the mean of the sample where the scale of the dense scores begins."""
_ROWS_FOR_ONE, _MOST_ROWS = 8, 1_000
"""Rows that are read by vector, and by words, for each candidate, and at most; the pool if it is larger."""
_DRIFT = 0.05
_MOST_SAMPLES = 256


class _Known(NamedTuple):
    """What a sample tells of a collection: its vectors (n, d), and what is usual for its texts."""

    vectors: FloatArray
    usual: Usual | None


class Searcher:
    """Finds and scores rows of a view.

    settings: of the index. score_scale: of the candidates.
    """

    def __init__(self, settings: HybridSettings, score_scale: ScoreScale) -> None:
        self._settings, self._score_scale = settings, score_scale
        self._samples: dict[Filter | None, tuple[int, _Known]] = {}

    def find(
        self,
        view: PostgresView,
        asked: SentenceQuery,
        direction: FloatArray,
        geometry: Geometry | None = None,
    ) -> list[Candidate]:
        """Return the candidates of a search, best first.

        direction: (d,) the query's vector. geometry: of the encoder.
        """
        query, top_k, wanted, returns = asked.text, asked.top_k, asked.filter, asked.returns
        if not (count := view.count()):
            raise EmptyIndexError("the index holds no text; add documents first")
        terms = np.unique(word_numbers(query, self._settings.stop_words))
        counted = wanted if self._settings.filter_statistics == "matching" else None
        frequencies, n_rows = view.frequencies(terms, counted)
        frequencies = np.minimum(frequencies, n_rows)
        size = max(top_k, min(_ROWS_FOR_ONE * top_k, _MOST_ROWS), self._settings.pool)
        size = min(size, max(count, _MOST_ROWS))
        pool = view.pool(direction, terms, idf(frequencies, n_rows), size, wanted)
        if not len(pool.keys):
            _warn(view, wanted)
            return []
        known = self._sample(view, wanted)
        common = known if counted == wanted else self._sample(view, counted)
        of_texts = common.usual or usual(pool.counted)
        by_words = bm25(pool.counted, terms, frequencies, n_rows, of_texts, self._settings)
        fused = self._fused(direction, pool, by_words, known.vectors)
        parts = {"dense": pool.dense, "bm25": by_words[0], "bm25_passage": by_words[1]}
        if geometry is not None:
            parts = geometry.with_levels(parts, direction)
        chosen = _chosen(fused, pool, returns, top_k)
        sentences = view.read([pool.keys[i] for i in chosen])
        n_wide = {"sentence": 0, "mixed": 1, "passage": len(chosen)}[returns]
        ranges = [(sentence.doc_id, *sentence.passage) for sentence in sentences[:n_wide]]
        between = view.between(ranges, "start") if ranges else []
        rows = [*map(_joined, between), *sentences[n_wide:]]
        candidates = [
            self._candidate(row, float(fused[i]), {name: values[i] for name, values in parts.items()})
            for i, row in zip(chosen, rows, strict=True)
        ]
        return _merged(candidates, rows) if asked.merge_adjacent else candidates

    def around(self, view: PostgresView, sentences: Sequence[Candidate], reach: int) -> list[Stretch]:
        """Return the stretches of `sentences`; see `DatabaseIndex.neighbours`."""
        spans = {(c.doc_id, c.start, c.end) for c in sentences}
        starts = [(doc_id, start, start + 1) for doc_id, start, _ in sorted(spans)]
        rows = [row for rows in view.between(starts, "start") for row in rows]
        places: dict[str, list[int]] = {}
        for row in rows:
            if (row.doc_id, row.start, row.end) in spans:
                places.setdefault(row.doc_id, []).append(row.place)
        ranges = [
            (doc_id, first, end)
            for doc_id, of_document in places.items()
            for first, end in rows_around(of_document, max(of_document) + reach + 1, reach)
        ]
        stretches = view.between(ranges, "place") if ranges else []
        return [self._stretch(rows) for rows in stretches if rows]

    def _fused(
        self, direction: FloatArray, pool: Pool, by_words: Sequence[FloatArray], sample: FloatArray
    ) -> FloatArray:
        """(n,) score of each row of the pool; by_words: (n,) at each scale. sample: vectors of some rows."""
        others = dots(sample, direction) if len(sample) else pool.dense
        weight = self._settings.dense_weight
        if self._settings.adaptive:
            weight *= adaptive_weight(others, float(pool.dense.max()))
        dense = _scaled(pool.dense, float(others.mean() - _LOWEST * others.std()))
        scales = [_scaled(scores, 0.0) for scores in by_words]
        wider = scales[1:] if self._settings.surroundings is not None else scales[1:2]
        words = weighted_scales(self._settings.alpha, scales[0], wider)
        fused: FloatArray = weight * dense + (1 - weight) * _scaled(words, 0.0)
        return fused

    def _sample(self, view: PostgresView, wanted: Filter | None) -> _Known:
        count = view.count()
        at, known = self._samples.get(wanted, (0, None))
        if known is None or count <= _EXACT_UP_TO or not math.isclose(count, at, rel_tol=_DRIFT):
            vectors, counted = view.sample(_SAMPLE, wanted)
            known = _Known(vectors, usual(counted) if len(vectors) else None)
            if len(self._samples) > _MOST_SAMPLES:
                self._samples.clear()
            self._samples[wanted] = count, known
        return known

    def _candidate(self, sentence: FoundSentence, score: float, scores: Mapping[str, Any]) -> Candidate:
        return Candidate(
            doc_id=sentence.doc_id,
            start=sentence.start,
            end=sentence.end,
            text=sentence.text[: sentence.end - sentence.start],
            score=score,
            score_scale=self._score_scale,
            n_tokens=sentence.n_tokens,
            passage=sentence.passage,
            scores={name: float(value) for name, value in scores.items()},
            metadata=sentence.metadata,
            above=read_titles(sentence.above),
        )

    def _stretch(self, rows: Sequence[FoundSentence]) -> Stretch:
        text = "".join(row.text for row in rows)[: rows[-1].end - rows[0].start]
        return Stretch(text, tuple(self._candidate(row, 0.0, {}) for row in rows))


def _scaled(scores: FloatArray, low: float) -> FloatArray:
    """(n,) scores scaled so that `low` is 0 and the best one is 1; zeros if none is higher."""
    best = float(scores.max())
    scaled: FloatArray = (scores - low) / (best - low) if best > low else np.zeros_like(scores)
    return scaled


def _warn(view: PostgresView, wanted: Filter | None) -> None:
    asked = [c.field for c in wanted.conditions() if c.operator != "$exists"] if wanted is not None else []
    for field in dict.fromkeys(asked):
        if field != ID and not view.has_field(field):
            warn_of_unknown_field(field)


def _chosen(fused: FloatArray, pool: Pool, returns: Returns, top_k: int) -> list[int]:
    """Places in the pool of the sentences to return, best first; see `Returns`."""
    order: list[int] = top_rows(fused, len(fused)).tolist()
    if returns == "sentence":
        return order[:top_k]
    passage = [(pool.doc_ids[i], pool.passages[i]) for i in order]
    if returns == "mixed":
        best = passage[0]
        rest = [i for i, its in zip(order[1:], passage[1:], strict=True) if its != best]
        return [order[0], *rest][:top_k]
    first = dict(zip(reversed(passage), reversed(order), strict=True))
    return [i for i, its in zip(order, passage, strict=True) if first[its] == i][:top_k]


def _merged(candidates: Sequence[Candidate], rows: Sequence[FoundSentence]) -> list[Candidate]:
    """Join neighbours of a passage, as `merge_neighbours` does; rows: those of the candidates."""
    runs: list[list[tuple[FoundSentence, Candidate]]] = []
    for row, candidate in sorted(zip(rows, candidates, strict=True), key=lambda pair: pair[0][:3]):
        last = runs[-1][-1][0] if runs else None
        if last is not None and last[0] == row[0] and last.passage == row.passage and row.start <= _end(last):
            runs[-1].append((row, candidate))
        else:
            runs.append([(row, candidate)])
    return sorted(map(_one, runs), key=lambda candidate: -candidate.score)


def _joined(rows: Sequence[FoundSentence]) -> FoundSentence:
    """Neighbouring rows as one."""
    n_tokens = sum(row.n_tokens for row in rows)
    return rows[0]._replace(end=rows[-1].end, n_tokens=n_tokens, text="".join(row.text for row in rows))


def _end(row: FoundSentence) -> int:
    """Where the sentence behind a row begins."""
    return row.start + len(row.text)


def _one(run: Sequence[tuple[FoundSentence, Candidate]]) -> Candidate:
    """Neighbours as one candidate, with the scores of the best of them."""
    best = max((candidate for _, candidate in run), key=lambda candidate: candidate.score)
    whole = _joined([row for row, _ in run])
    text = whole.text[: whole.end - whole.start]
    return replace(best, start=whole.start, end=whole.end, text=text, n_tokens=whole.n_tokens)
