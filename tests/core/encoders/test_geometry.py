"""Cosines of any encoder are read as those of all-MiniLM-L6-v2."""

from collections.abc import Callable, Sequence
from pydoc_data.topics import topics
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from precise_rag import Document, PreciseRAG
from precise_rag.candidate_filters import RedundancyFilter
from precise_rag.encoders import load_encoder
from precise_rag.encoders.geometry import LEVELS, cosine_like, geometry_of
from precise_rag.encoders.local import MINILM
from precise_rag.errors import ModelError
from precise_rag.index import DenseIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.segmentation.greedy import GreedySegmenter
from precise_rag.tokens import estimate_token_counts
from precise_rag.types import Candidate, FloatArray, IntArray
from support.documents import read_cases

_DRAW = np.random.default_rng(1)
_ROTATION = np.linalg.qr(_DRAW.normal(size=(384, 384)))[0].astype(np.float32)
_DIRECTION = np.full(384, 384**-0.5, dtype=np.float32)
_NOISE = _DRAW.normal(size=(384, 384)).astype(np.float32)
CHANGES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "rotated": lambda v: v @ _ROTATION,
    "scaled": lambda v: 7 * v,
    "shifted": lambda v: v + 0.5 * _DIRECTION,
    "in a cone": lambda v: v + 1.5 * _DIRECTION,
    "in a narrow cone": lambda v: v + 4 * _DIRECTION,
    "cut short": lambda v: v[:, :192],
    "rounded to 8 bits": lambda v: np.round(v * 500).clip(-127, 127),
}
"""What applications bring of the same vectors. A vector is brought to unit length afterwards."""
QUESTIONS = (
    "When is the else clause of a try statement executed?",
    "What does the global statement do?",
    "How is an exception raised again?",
)
DOCUMENTS = [Document(page, topics[page]) for page in ("try", "raise", "global", "with", "for", "assert")]
_ENCODED: dict[str, FloatArray] = {}


def packaged_vectors(texts: Sequence[str]) -> FloatArray:
    """MiniLM's vectors of texts; each is encoded once."""
    if new := [text for text in dict.fromkeys(texts) if text not in _ENCODED]:
        _ENCODED.update(zip(new, load_encoder(MINILM).encode(new), strict=True))
    return np.stack([_ENCODED[text] for text in texts])


class Changed:
    """MiniLM with changed vectors."""

    def __init__(self, change: Callable[[FloatArray], FloatArray] = lambda v: v) -> None:
        self.change, self.name = change, "changed"
        self.dimension = change(np.zeros((1, 384), dtype=np.float32)).shape[1]
        self.n_texts = 0

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        self.n_texts += len(texts)
        return self._unit(packaged_vectors(texts))

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        return self._unit(packaged_vectors(queries))

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        return estimate_token_counts(texts)

    def _unit(self, vectors: FloatArray) -> FloatArray:
        rows = np.asarray(self.change(vectors), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def tokens_sent(encoder: Changed) -> int:
    rag = PreciseRAG(HybridIndex.build(DOCUMENTS, encoder), reranker="packaged")
    return sum(c.n_tokens or 0 for question in QUESTIONS for c in rag.retrieve(question).kept)


def test_another_geometry_sends_hardly_more() -> None:
    usual = tokens_sent(Changed())
    sent = {name: tokens_sent(Changed(change)) for name, change in CHANGES.items()}
    assert all(n_tokens <= 1.2 * usual for n_tokens in sent.values()), (usual, sent)


def test_the_packaged_geometry_is_left_as_it_is_and_vectors_that_say_nothing_have_no_level() -> None:
    assert geometry_of(load_encoder(MINILM)) is None
    for change in (CHANGES["rotated"], CHANGES["scaled"], CHANGES["rounded to 8 bits"]):
        assert geometry_of(Changed(change)) is None
    encoder = Changed(lambda v: np.sin(1e4 * (v @ _NOISE)))
    found = DenseIndex.build(DOCUMENTS, encoder).search(QUESTIONS[0])
    assert all(np.isnan(c.scores["dense_level"]) for c in found)
    assert cosine_like(0.9, encoder) == 0.9


def test_an_encoder_that_fails_for_now_is_measured_later(caplog: pytest.LogCaptureFixture) -> None:
    def fail(texts: Sequence[str]) -> FloatArray:
        raise ModelError("the service does not answer")

    encoder: Any = Changed(CHANGES["in a cone"])
    index = DenseIndex.build(DOCUMENTS[:2], encoder)
    encoder.encode = fail
    (plain, *_) = index.search(QUESTIONS[0])
    assert "dense_level" not in plain.scores
    assert "the service does not answer" in caplog.text
    del encoder.encode
    assert "dense_level" in index.search(QUESTIONS[0])[0].scores


def test_encoders_of_any_class_are_measured_once() -> None:
    encoder = Changed(CHANGES["in a cone"])
    index = DenseIndex.build(DOCUMENTS[:2], encoder)
    before = encoder.n_texts
    for question in QUESTIONS:
        index.search(question)
    DenseIndex.build([], encoder)
    assert encoder.n_texts - before == 48
    bare: Any = SimpleNamespace(name="bare", encode=encoder.encode)  # has no hash and no weak references
    for _ in range(2):
        assert geometry_of(bare) is geometry_of(bare) is not None
    assert encoder.n_texts - before == 96


@pytest.mark.parametrize("kind", [DenseIndex, SentenceContextIndex, WordSentenceIndex, HybridIndex])
def test_every_index_gives_levels(kind: Any) -> None:
    ours = kind.build(DOCUMENTS, Changed()).search(QUESTIONS[0], 30)
    theirs = kind.build(DOCUMENTS, Changed(CHANGES["in a cone"])).search(QUESTIONS[0], 30)
    expected = {c.id: c.scores["dense"] for c in ours}
    both = [(expected[c.id], c.scores["dense"], c.scores["dense_level"]) for c in theirs if c.id in expected]
    assert len(both) >= 10
    assert not any(level in c.scores for c in ours for level in LEVELS.values())
    assert np.mean([abs(raw - known) for known, raw, _ in both]) > 0.2
    assert np.mean([abs(level - known) for known, _, level in both]) < 0.12


def test_thresholds_of_cosines_mean_the_same() -> None:
    encoder = Changed(CHANGES["in a narrow cone"])
    assert 0.98 < cosine_like(0.9, encoder) < 1.0
    assert cosine_like(0.9, Changed()) == 0.9
    text = topics["try"]
    ours, theirs = (GreedySegmenter(one).segment(text) for one in (Changed(), encoder))
    assert len(theirs) == pytest.approx(len(ours), rel=0.2)
    said = read_cases("encoders.json", "two that say the same")
    candidates = [Candidate(doc_id, 0, 10, text, score, "probability") for doc_id, text, score in said]
    kept = [c.doc_id for c in RedundancyFilter(encoder=encoder).filter(candidates).kept]
    assert kept == ["a", "c"]
