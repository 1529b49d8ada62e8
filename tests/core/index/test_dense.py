import numpy as np

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


def test_chunks_are_filled_with_whole_sentences() -> None:
    document = Document("a", "One two three. Four five. Six.\n\nSeven eight nine ten eleven twelve. End.")
    index = DenseIndex.build([document], HashEncoder(), chunks="5 tokens")
    chunks = sorted(index.search("x", 10), key=lambda c: c.start)
    assert [c.text for c in chunks] == [
        "One two three. Four five.",
        "Six.",
        "Seven eight nine ten eleven twelve.",
        "End.",
    ]
    assert [c.n_tokens for c in chunks] == [5, 1, 6, 1]
