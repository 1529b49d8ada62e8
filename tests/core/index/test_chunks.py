from precise_rag.index import DenseIndex
from precise_rag.testing import HashEncoder
from precise_rag.types import Document


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
