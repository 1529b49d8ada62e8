"""Weighted vectors, for plain similarity search over them in any vector store."""

from uuid import UUID

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.facts import FACTS_KEY, piece_id, read_facts
from precise_rag.index import (
    DenseIndex,
    SentenceContextIndex,
    weighted_chunks,
    weighted_sentences,
)
from precise_rag.segmentation import Segmenter
from precise_rag.testing import HashEncoder
from precise_rag.types import Document, FloatArray

DOCUMENTS = [
    Document(
        "tea", "Green tea is steamed. Black tea is oxidised fully.\n\nWhite tea is dried.", {"shelf": 1}
    ),
    Document(
        "iron", "Iron rusts in damp air. Zinc keeps it bright.\n\nSteel is iron with carbon.", {"shelf": 2}
    ),
    Document(
        "bees", "Bees dance to tell of flowers. The dance points at the sun. Drones do not.", {"shelf": 3}
    ),
]


def test_sentences_have_ids_metadata_and_vectors_that_score_like_the_index() -> None:
    sentences = list(weighted_sentences(DOCUMENTS, HashEncoder(), alpha=0.7))
    assert [s.text for s in sentences[:3]] == [
        "Green tea is steamed.",
        "Black tea is oxidised fully.",
        "White tea is dried.",
    ]
    assert UUID(sentences[1].id).version == 5
    assert len({s.id for s in sentences}) == len(sentences)
    assert sentences[1].metadata.keys() == {"shelf", FACTS_KEY}
    assert sentences[1].metadata["shelf"] == 1
    facts = {"doc_id": "tea", "start": 22, "end": 50, "passage": [0, 50]}
    assert read_facts(sentences[1].metadata) == facts
    np.testing.assert_allclose([np.linalg.norm(s.vector) for s in sentences], 1, atol=1e-5)
    index = SentenceContextIndex.build(DOCUMENTS, HashEncoder(), alpha=0.7)
    expected = {piece_id(c.doc_id, c.start, c.end): c.score for c in index.search("Does iron rust?", 100)}
    (query,) = HashEncoder().encode_queries(["Does iron rust?"])
    assert {s.id: float(s.vector @ query) for s in sentences} == pytest.approx(expected, abs=1e-4)


def test_what_belongs_to_the_caller_stays() -> None:
    own = {"doc_id": 7, "start": "dawn", "end": "dusk", "passage_start": 0}
    document = Document("tea", "Green tea is steamed. Black tea is oxidised fully.", own)
    for pieces in (weighted_sentences([document], HashEncoder()), weighted_chunks([document], HashEncoder())):
        for piece in pieces:
            facts = read_facts(piece.metadata)
            assert {key: piece.metadata[key] for key in own} == own
            assert facts["doc_id"] == "tea"
            assert document.text[facts["start"] : facts["end"]] == piece.text


def test_documents_are_read_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(weighted_sentences(DOCUMENTS, HashEncoder()))
    monkeypatch.setattr("precise_rag.index.export._DOCUMENTS", 1)
    parts = list(weighted_sentences(iter([Document("blank", " "), *DOCUMENTS]), HashEncoder()))
    assert [s.id for s in parts] == [s.id for s in whole]
    np.testing.assert_allclose([s.vector for s in parts], [s.vector for s in whole], atol=1e-6)


def test_weighted_chunks_score_like_a_dense_index_of_chunks_in_context() -> None:
    segmenter = Segmenter.from_pretrained("small", max_tokens=12)
    documents = iter([*DOCUMENTS, Document("blank", " \n")])
    chunks = list(weighted_chunks(documents, HashEncoder(), segmenter, alpha=0.7, whole=0))
    for document in DOCUMENTS:
        mine = [chunk for chunk in chunks if read_facts(chunk.metadata)["doc_id"] == document.id]
        assert "".join(chunk.text for chunk in mine) == document.text.strip(" \n")
        facts = [read_facts(chunk.metadata) for chunk in mine]
        assert [c.text for c in mine] == [document.text[fact["start"] : fact["end"]] for fact in facts]
    assert chunks[0].metadata["shelf"] == 1
    index = DenseIndex.build(DOCUMENTS, HashEncoder(), chunks=segmenter, chunk_vectors="context", alpha=0.7)
    query = "What do bees dance for?"
    scores = np.stack([p.vector for p in chunks]) @ HashEncoder().encode_queries([query])[0]
    expected = {chunk.text.strip(): float(score) for chunk, score in zip(chunks, scores, strict=True)}
    found = {c.text: c.score for c in index.search(query, len(chunks))}
    assert found == pytest.approx(expected, abs=1e-6)


def test_chunks_of_one_long_sentence_have_its_vector() -> None:
    text = "Alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu."
    chunks = list(
        weighted_chunks(
            [Document("d", text)], HashEncoder(), Segmenter.from_pretrained("small", max_tokens=5), whole=0
        )
    )
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


def test_weights_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match=r"whole must be .* got 2"):
        next(weighted_chunks(DOCUMENTS, HashEncoder(), whole=2))
    with pytest.raises(InputError, match=r"alpha must be between 0 .* and 1 .*, got -1"):
        next(weighted_chunks(DOCUMENTS, HashEncoder(), alpha=-1))
