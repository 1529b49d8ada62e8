"""Dense indexes, the formulas of ParetoRAG and of the word filter by hand, and vectors for other stores."""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from precise_rag.encoders.geometry import geometry_of
from precise_rag.errors import InputError, ModelError
from precise_rag.facts import FACTS_KEY, piece_id, read_facts
from precise_rag.index import (
    DenseIndex,
    SentenceContextIndex,
    WordSentenceIndex,
    weighted_chunks,
    weighted_sentences,
)
from precise_rag.index.words import load_stop_words
from precise_rag.segmentation import Segmenter
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray

TEXTS = {
    "tea": "Green tea is steamed. Black tea is oxidised.\n\nIron rusts in air. Zinc keeps it.",
    "blank": " \n",
    "bees": "Bees dance to tell of flowers. The dance points at the sun.",
}
DOCUMENTS = [Document(name, text, {"shelf": n}) for n, (name, text) in enumerate(TEXTS.items(), start=1)]
SENTENCES = [f"{part.strip()}." for text in TEXTS.values() for part in text.split(".")[:-1]]


class AxisEncoder(HashEncoder):
    """One axis per letter, so that every product can be worked out by hand."""

    def __init__(self) -> None:
        super().__init__(4)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        rows = np.array([[text.lower().count(c) for c in "abcd"] for text in queries], dtype=np.float32)
        return rows.reshape(-1, 4) / np.maximum(np.linalg.norm(rows.reshape(-1, 4), axis=1, keepdims=True), 1)


PASSAGES = Document("p", "Aa! Bb! Cc!\n\nDd!")


@pytest.mark.parametrize(
    ("similarity", "context", "alpha", "norm"),
    [
        ("dot", "encode", 0.8, 1.0),
        ("cosine", "encode", 0.6, math.sqrt(0.36 + 0.16)),  # core and context are orthogonal here
    ],
)
def test_the_papers_formula_by_hand(similarity: str, context: str, alpha: float, norm: float) -> None:
    """alpha * core + (1 - alpha) * context, of unit length for cosine; alone in its passage: the core."""
    index = SentenceContextIndex.build(
        [PASSAGES], AxisEncoder(), alpha=alpha, context=context, similarity=similarity
    )
    scores = {c.text: c.score for c in index.search("a", 4)}
    # context of B is "A C" = (1, 0, 1, 0) / sqrt 2; of A it is "B C", which is 0 on this axis
    near = (1 - alpha) / math.sqrt(2) / norm
    assert scores == pytest.approx({"Aa!": alpha / norm, "Bb!": near, "Cc!": near, "Dd!": 0}, abs=1e-6)
    assert {c.text: c.score for c in index.search("d", 1)} == pytest.approx({"Dd!": 1.0})


def test_alpha_changes_at_query_time_without_encoding() -> None:
    encoder = HashEncoder()
    document = Document("x", "Cats sleep. Dogs bark loudly. Owls hoot.\n\nFish swim. Dogs run.")
    index = SentenceContextIndex.build([document], encoder)
    geometry_of(encoder)  # is measured once, by sentences of its own
    encoder.calls.clear()
    for alpha in (0.0, 0.3, 1.0):
        fresh = SentenceContextIndex.build([document], HashEncoder(), alpha=alpha)
        expected = {c.id: c.score for c in fresh.search("dogs bark", 5)}
        found = {c.id: c.score for c in index.search("dogs bark", 5, alpha=alpha)}
        assert found == pytest.approx(expected)
    assert encoder.calls == []
    alone = index.search("dogs bark", 5, alpha=1.0)
    assert [c.score for c in alone] == pytest.approx([c.scores["core"] for c in alone])


ANIMALS = [
    Document("a", "The cat sat on the mat. It purred. The dog barked at the cat."),
    Document("b", "Interest rates rose. The bank of the river flooded. A dog swam."),
]


def test_equals_the_papers_algorithm() -> None:
    """Algorithm 1 in sets and loops, then cosine on what passed; in a script without spaces, too."""
    documents = [*ANIMALS, Document("th", "พิพิธภัณฑ์เปิดเวลาเก้าโมงเช้า")]
    index, stop_words = WordSentenceIndex.build(documents, HashEncoder()), load_stop_words("english")
    rows = DenseIndex.build(documents, HashEncoder(), chunks="sentences").search("x", 100)
    assert len(index.candidate_rows("พิพิธภัณฑ์เปิดกี่โมง")) == 1

    def tokens(text: str) -> set[str]:
        pieces = index._tokenizer.encode(text.lower(), add_special_tokens=False).tokens
        return {p for p in pieces if p.lstrip("\u2581") not in stop_words and any(c.isalnum() for c in p)}

    for query in ("dog and cat", "river bank interest", "Did the mat purr?", "where is it?", ""):
        passed = [row for row in rows if tokens(row.text) & tokens(query)]
        vector = HashEncoder().encode_queries([query])[0]
        expected = {row.id: float(HashEncoder().encode([row.text])[0] @ vector) for row in passed}
        assert {c.id: c.score for c in index.search(query, 100)} == pytest.approx(expected, abs=1e-6)
        assert len(index.candidate_rows(query)) == len(passed)


def test_stop_words_of_other_languages_may_be_several_tokens() -> None:
    """The vocabulary cuts "währenddessen" in three, and words are compared without accents."""
    documents = [Document("de", "Das Boot liegt währenddessen am Ufer. Wir reden über Nichten.")]
    index = WordSentenceIndex.build(documents, HashEncoder(), stop_words=("währenddessen", "über", "wir"))
    assert index.search("Währenddessen über Wir!", 10) == []
    assert index.search("Wo ist das Boot?", 10)[0].text == "Das Boot liegt währenddessen am Ufer."


def test_min_overlap_and_max_candidates_narrow() -> None:
    index = WordSentenceIndex.build(ANIMALS, HashEncoder(), min_overlap=2)
    assert [c.text for c in index.search("dog and cat", 10)] == ["The dog barked at the cat."]
    capped = WordSentenceIndex.build(ANIMALS, HashEncoder(), max_candidates=1)
    # "river" is in one sentence and "dog" in two, so the rarer one wins
    assert [c.text for c in capped.search("dog river", 10)] == ["The bank of the river flooded."]
    plain = WordSentenceIndex.build(ANIMALS, HashEncoder())
    capped = WordSentenceIndex.build(ANIMALS, HashEncoder(), max_candidates=6)
    expected = {c.id: c.score for c in plain.search("dog and cat")}
    assert {c.id: c.score for c in capped.search("dog and cat")} == pytest.approx(expected)


def test_sentences_have_ids_metadata_and_vectors_that_score_like_the_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where documents are read in batches."""
    monkeypatch.setattr("precise_rag.index.export._DOCUMENTS", 2)
    sentences = list(weighted_sentences(iter(DOCUMENTS), HashEncoder(), alpha=0.7))
    for weighted in (weighted_sentences, weighted_chunks):
        with pytest.raises(InputError, match="two documents have the id 'tea'"):
            list(weighted([*DOCUMENTS, DOCUMENTS[0]], HashEncoder()))
    assert [s.text for s in sentences] == SENTENCES
    assert UUID(sentences[1].id).version == 5
    assert len({s.id for s in sentences}) == len(sentences)
    assert {**sentences[1].metadata, FACTS_KEY: ""} == {"shelf": 1, FACTS_KEY: ""}
    facts = {"doc_id": "tea", "start": 22, "end": 44, "passage": [0, 44], "window": [0, 79]}
    assert read_facts(sentences[1].metadata) == facts
    *_, below = weighted_sentences([Document("pump", "# Oil\n\nTwo litres.")], HashEncoder())
    assert (below.text, below.metadata["header_path"]) == ("Two litres.", "/Oil/")
    np.testing.assert_allclose([np.linalg.norm(s.vector) for s in sentences], 1, atol=1e-5)
    index = SentenceContextIndex.build(DOCUMENTS, HashEncoder(), alpha=0.7)
    expected = {piece_id(c.doc_id, c.start, c.end): c.score for c in index.search("Does iron rust?", 100)}
    (query,) = HashEncoder().encode_queries(["Does iron rust?"])
    assert {s.id: float(s.vector @ query) for s in sentences} == pytest.approx(expected, abs=1e-4)


def test_weighted_chunks_score_like_a_dense_index_of_chunks_in_context_that_encodes_only_sentences() -> None:
    segmenter, encoder = Segmenter.from_pretrained("small", max_tokens=12), HashEncoder()
    chunks = list(weighted_chunks(iter(DOCUMENTS), HashEncoder(), segmenter, alpha=0.7, whole=0))
    for document in DOCUMENTS:
        mine = [chunk for chunk in chunks if read_facts(chunk.metadata)["doc_id"] == document.id]
        assert "".join(chunk.text for chunk in mine) == document.text.strip(" \n")
        facts = [read_facts(chunk.metadata) for chunk in mine]
        assert [c.text for c in mine] == [document.text[fact["start"] : fact["end"]] for fact in facts]
    assert chunks[0].metadata["shelf"] == 1
    index = DenseIndex.build(DOCUMENTS, encoder, chunks=segmenter, chunk_vectors="context", alpha=0.7)
    assert encoder.calls == SENTENCES
    query = "What do bees dance for?"
    scores = np.stack([p.vector for p in chunks]) @ HashEncoder().encode_queries([query])[0]
    expected = {chunk.text.strip(): float(score) for chunk, score in zip(chunks, scores, strict=True)}
    found = {c.text: c.score for c in index.search(query, len(chunks))}
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_saved_index_of_a_segmenter_with_options_grows_with_the_same_ones(tmp_path: Path) -> None:
    small: Any = partial(Segmenter.from_pretrained, "small")
    assert small().name == small(max_tokens=1024).name == "small"
    hard = DenseIndex.build(DOCUMENTS, HashEncoder(), chunks=small(paragraphs="hard"))
    hard.save(tmp_path / "hard")
    with pytest.raises(ModelError, match=r"chunks='small\(paragraphs=hard\)"):
        DenseIndex.load(tmp_path / "hard", HashEncoder()).add([Document("new", TEXTS["tea"])])
    DenseIndex.build(DOCUMENTS, HashEncoder(), chunks=small(max_tokens=12)).save(tmp_path / "small")
    for other in (small(max_tokens=900), small(max_tokens=12, count_tokens=len)):
        with pytest.raises(InputError, match="chunks cannot change"):
            DenseIndex.load(tmp_path / "small", HashEncoder(), chunks=other)
    for options in ({}, {"chunks": small(max_tokens=12)}):
        index = DenseIndex.load(tmp_path / "small", HashEncoder(), **options)
        index.add([Document(f"{d.id}2", d.text) for d in DOCUMENTS])
        assert len(index) == 2 * len(DenseIndex.load(tmp_path / "small", HashEncoder()))


def test_chunks_of_one_long_sentence_have_its_vector() -> None:
    text = "Alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu."
    segmenter = Segmenter.from_pretrained("small", max_tokens=5)
    chunks = list(weighted_chunks([Document("d", text)], HashEncoder(), segmenter, whole=0))
    assert len(chunks) > 1
    assert "".join(p.text for p in chunks) == text
    for chunk in chunks[1:]:
        np.testing.assert_allclose(chunk.vector, chunks[0].vector, atol=1e-6)


def test_the_vector_of_the_whole_chunk_is_mixed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    segmenter, encoder = Segmenter.from_pretrained("small", max_tokens=12), HashEncoder()

    def vectors(whole: float) -> FloatArray:
        return np.stack([c.vector for c in weighted_chunks(DOCUMENTS, encoder, segmenter, whole=whole)])

    texts = [chunk.text.strip() for chunk in weighted_chunks(DOCUMENTS, encoder, segmenter)]
    np.testing.assert_allclose(vectors(1), encoder.encode(texts), atol=1e-6)
    mixed = 0.5 * encoder.encode(texts) + 0.5 * vectors(0)
    expected = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors(0.5), expected, atol=1e-6)
    monkeypatch.setattr("precise_rag.index.export._CHUNKS", 2)
    np.testing.assert_allclose(vectors(0.5), expected, atol=1e-6)
    monkeypatch.setattr("precise_rag.index.export._READ", 0)
    np.testing.assert_allclose(vectors(0.5), vectors(0), atol=1e-6)
