"""What the growth model reads: of each found sentence, and of each step to a neighbour."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag._data import packaged_toml
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.stems import QUESTION_KINDS, question_kinds
from precise_rag.types import FloatArray, Stretch

_MORE, _LEANING = packaged_toml("evidence/first_words.toml").values()
_ASKS_FOR_MORE = re.compile(rf"(?i)\b({_MORE})\b")
"""Words that ask for more than a fact."""
_LEANS = re.compile(rf"(?i)\W*({_LEANING})\b")
"""A first word that refers to the sentence before."""
TEXT_FEATURES = ("digits", "quotes", "first_person", "third_person", "words")
"""What kind of text it is around a step: encyclopedias, stories and meetings answer at different lengths."""
_MARGIN = 1e-4
"""Probabilities nearer to 0 or 1 count as this one."""
_DIGITS = re.compile(r"(?<![^\W\d_])[^\W\d_]*+\d\S*+")
_QUOTES = re.compile(r"[\"“”«»„「」]")
_FIRST_PERSON = re.compile(r"\b(i|we|you|me|us|my|our|your)\b", re.IGNORECASE)
_THIRD_PERSON = re.compile(r"\b(he|she|they|him|her|them|his|their)\b", re.IGNORECASE)
_TEXT_UNITS = np.array([0.06, 0.6, 0.1, 0.1, 1.0])
_AROUND = 8
"""Sentences on each side of a step that say what kind of text it is."""
FOUND_FEATURES = ("bias", "probability")
"""What is known about a found sentence, in the order of the columns."""
STEP_FEATURES = (
    *("bias", "same", "break", "leans", "after_question", "forward", "tokens", "is_found", "probability"),
    *TEXT_FEATURES,
    *("query_words", *QUESTION_KINDS, "asks_for_more"),
)
"""What is known about the step from a sentence to a neighbour, in the order of the columns."""


class StretchFeatures(NamedTuple):
    """Features of the n sentences of a stretch.

    forward: (n - 1, len(STEP_FEATURES)) of the step over each gap to the later sentence.
    backward: (n - 1, len(STEP_FEATURES)) of the step over each gap to the earlier sentence.
    """

    forward: FloatArray
    backward: FloatArray


def question_features(query: str) -> FloatArray:
    """Return the features of the query alone: its length and its kinds."""
    kinds = [*question_kinds(query), float(bool(_ASKS_FOR_MORE.search(query)))]
    return np.array([math.log1p(len(query.split())) - 2.3, *kinds], dtype=np.float32)


def found_features(probability: FloatArray) -> FloatArray:
    """Return the (n, len(FOUND_FEATURES)) features of (n,) probabilities; NaN is read as 0."""
    odds = log_odds(np.nan_to_num(probability), margin=_MARGIN)
    return np.column_stack([np.ones(len(odds)), odds]).astype(np.float32)


def stretch_features(
    question: FloatArray, stretch: Stretch, probability: FloatArray, same: FloatArray
) -> StretchFeatures:
    """Return the features of a stretch.

    question: by `question_features`.
    probability: (n,) of each found sentence; NaN for the others.
    same: (n - 1,) probability that each sentence belongs together with the next, by a boundary model.
    """
    texts = [sentence.text for sentence in stretch.sentences]
    n = len(texts)
    known = ~np.isnan(probability)
    tokens = np.log1p([sentence.n_tokens or 0 for sentence in stretch.sentences]) - 3.2
    origin = stretch.sentences[0].start
    pairs = pairwise(stretch.sentences)
    gaps = [stretch.text[left.end - origin : right.start - origin] for left, right in pairs]
    is_break = np.array([gap.count("\n") > 1 for gap in gaps], dtype=np.float64)
    odds = found_features(probability)[:, 1]
    leans = np.array([bool(_LEANS.match(text)) for text in texts])[1:]
    asks = np.array([text.endswith(("?", "？")) for text in texts])[:-1]
    gap = [np.ones(n - 1), log_odds(same, margin=_MARGIN) / 2, is_break, leans, asks]
    kind = _text_features(texts)
    onto = np.column_stack([tokens, known, np.where(known, odds + 3.0, 0.0) / 2])
    asked = np.tile(question, (n - 1, 1))
    forward, backward = (
        np.column_stack([*gap, np.full(n - 1, ahead), onto[rows], kind, asked]).astype(np.float32)
        for ahead, rows in ((1.0, slice(1, None)), (0.0, slice(0, n - 1)))
    )
    return StretchFeatures(forward, backward)


def _text_features(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """(n - 1, len(TEXT_FEATURES)) means over the sentences around each gap, each in [-2, 2]."""
    n = len(texts)
    rows = np.empty((n, len(TEXT_FEATURES)))
    for row, text in enumerate(texts):
        n_words = len(text.split()) or 1
        marks = (_DIGITS, _FIRST_PERSON, _THIRD_PERSON)
        digits, first, third = (len(mark.findall(text)) / n_words for mark in marks)
        rows[row] = digits, bool(_QUOTES.search(text)), first, third, math.log(n_words) - 2.8
    sums = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows / _TEXT_UNITS, axis=0)])
    gaps = np.arange(1, n)
    start, end = np.maximum(gaps - _AROUND, 0), np.minimum(gaps + _AROUND, n)
    means: npt.NDArray[np.float64] = (sums[end] - sums[start]) / (end - start)[:, None]
    return means.clip(-2.0, 2.0)
