from precise_rag.index import BM25Index
from precise_rag.types import Document

DOCUMENTS = [
    Document("a", "The cat sat on the mat. It purred. The dog barked at the cat."),
    Document("b", "Interest rates rose. The bank of the river flooded. A dog swam."),
]


def test_chunks_without_a_word_of_the_query_are_not_returned() -> None:
    index = BM25Index.build(DOCUMENTS, chunks="sentences")
    assert {c.text for c in index.search("cat", 10)} == {
        "The cat sat on the mat.",
        "The dog barked at the cat.",
    }
    assert index.search("zyzzyva", 10) == []
    assert index.search("", 10) == []
