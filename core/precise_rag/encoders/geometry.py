"""What cosines mean: those of any encoder, compared with what is usual for it.

Texts that have nothing to do with each other have a cosine near 0 with one encoder, and of 0.8 with another
whose vectors lie in a narrow cone. Pairs of sentences that say the same, and sentences that have nothing in
common, show how an encoder tells them apart.
"""

import logging
import math
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from precise_rag._data import packaged_toml
from precise_rag.encoded import encode_documents
from precise_rag.encoders.local import MINILM
from precise_rag.errors import ModelError
from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray

_log = logging.getLogger(__name__)
_RELATED, _UNRELATED = 0.817, 0.048
"""Mean cosines of the pairs of geometry.toml, and of sentences of different pairs, with all-MiniLM-L6-v2."""
_SAME = 0.03
"""Means that differ by less are those of all-MiniLM-L6-v2."""
_TOLD_APART = 0.8
"""Share of comparisons in which related sentences must be nearer; vectors that do worse say nothing."""
LEVELS: Mapping[str, str] = MappingProxyType({"dense": "dense_level", "core": "core_level"})
"""Names in `Candidate.scores` of cosines, and of these as all-MiniLM-L6-v2 might give them. An index adds
the latter if its encoder has another geometry; rerankers read them in place of the former."""


class Geometry(NamedTuple):
    """How to read the cosines of an encoder as those of all-MiniLM-L6-v2.

    usual: (d,) the mean vector of texts that have nothing to do with each other, or with a question.
    unrelated: the mean cosine of such texts.
    slope: the distance of unrelated and related texts with all-MiniLM-L6-v2, as a multiple of this one's;
        NaN for vectors that do not tell them apart.
    """

    usual: FloatArray
    unrelated: float
    slope: float


_known: deque[tuple[Callable[[], Encoder | None], Geometry | None]] = deque(maxlen=256)
"""Encoders and what was measured of them. They are compared by identity: not every object has a hash."""


def geometry_of(encoder: Encoder) -> Geometry | None:
    """Return how to read the cosines of an encoder; None if they are as those of all-MiniLM-L6-v2.

    Any but all-MiniLM-L6-v2 encodes 48 short sentences, once. While it fails to, its cosines are read as
    they are, with a warning in the log.
    """
    for known, geometry in list(_known):
        if known() is encoder:
            return geometry
    try:
        geometry = _measured(encoder)
    except ModelError as error:
        _log.warning("cosines are read as they are, because the encoder failed: %s", error)
        return None
    _known.append((_reference(encoder), geometry))
    return geometry


def with_levels(
    encoder: Encoder, scores: Mapping[str, FloatArray], query: FloatArray
) -> Mapping[str, FloatArray]:
    """Add to the scores of n candidates their cosines as all-MiniLM-L6-v2 might give them.

    scores: (n,) each, by name. query: (d,) its vector. Levels that nobody can know are NaN; see `LEVELS`.
    """
    geometry = geometry_of(encoder)
    if geometry is None or query.shape != geometry.usual.shape:  # the vectors are not the encoder's
        return scores
    usual = float(query @ geometry.usual)
    levels = {
        level: (_UNRELATED + geometry.slope * (scores[name] - usual)).astype(np.float32)
        for name, level in LEVELS.items()
        if name in scores
    }
    return {**scores, **levels}


def _reference(encoder: Encoder) -> Callable[[], Encoder | None]:
    """A weak reference; a strong one to an object that cannot have a weak one."""
    try:
        return weakref.ref(encoder)
    except TypeError:
        return lambda: encoder


def cosine_like(cosine: float, encoder: Encoder) -> float:
    """Return the cosine of two texts that is with an encoder what `cosine` is with all-MiniLM-L6-v2.

    It is `cosine` itself for vectors that do not tell texts apart.
    """
    geometry = geometry_of(encoder)
    if geometry is None or math.isnan(geometry.slope):
        return cosine
    return geometry.unrelated + (cosine - _UNRELATED) / geometry.slope


def _measured(encoder: Encoder) -> Geometry | None:
    if getattr(encoder, "name", "") == MINILM:
        return None
    pairs = packaged_toml("encoders/geometry.toml")["pairs"]
    vectors = encode_documents(encoder, [sentence for pair in pairs for sentence in pair])
    products = vectors[0::2].astype(np.float64) @ vectors[1::2].T.astype(np.float64)
    related, unrelated = np.diag(products), products[~np.eye(len(pairs), dtype=np.bool_)]
    near, far = float(related.mean()), float(unrelated.mean())
    if abs(near - _RELATED) < _SAME and abs(far - _UNRELATED) < _SAME:
        return None
    is_told = float((related[:, None] > unrelated[None]).mean()) >= _TOLD_APART
    slope = (_RELATED - _UNRELATED) / (near - far) if is_told else math.nan
    return Geometry(vectors.mean(axis=0), far, slope)
