import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.index import DenseIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

DOCUMENTS = [
    Document("tea", "Green tea is steamed. Black tea is oxidised.\n\nIron rusts in air. Zinc keeps it."),
    Document("blank", " \n"),
    Document("bees", "Bees dance to tell of flowers. The dance points at the sun."),
]


def test_chunks_in_context_encode_only_sentences() -> None:
    encoder = HashEncoder()
    index = DenseIndex.build(DOCUMENTS, encoder, chunks="paragraphs", chunk_vectors="context", alpha=0.5)
    assert encoder.calls == [
        "Green tea is steamed.",
        "Black tea is oxidised.",
        "Iron rusts in air.",
        "Zinc keeps it.",
        "Bees dance to tell of flowers.",
        "The dance points at the sun.",
    ]
    plain = DenseIndex.build(DOCUMENTS, HashEncoder(), chunks="paragraphs", chunk_vectors="mean")
    query = "Is tea steamed?"
    iron, plain_iron = (
        next(c.score for c in found.search(query, 5) if "Iron" in c.text) for found in (index, plain)
    )
    assert plain_iron < iron, "the vector of a paragraph includes the paragraph before it"


def test_scores_are_cosines_with_the_query() -> None:
    query = HashEncoder().encode_queries(["Is tea steamed?"])[0]
    found = DenseIndex.build(DOCUMENTS, HashEncoder(), chunks="paragraphs").search("Is tea steamed?", 5)
    cosines = HashEncoder().encode([c.text for c in found]) @ query
    np.testing.assert_allclose([c.score for c in found], cosines, atol=1e-6)
    np.testing.assert_allclose([c.scores["dense"] for c in found], cosines, atol=1e-6)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match=r"alpha must be between 0 .* and 1 .*, got 1\.5"):
        DenseIndex.build(DOCUMENTS, HashEncoder(), alpha=1.5)
    with pytest.raises(InputError, match="chunk_vectors must be 'encode', 'mean' or 'context', got 'sum'"):
        DenseIndex.build(DOCUMENTS, HashEncoder(), chunk_vectors="sum")
