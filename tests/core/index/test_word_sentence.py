"""The word filter against the paper's algorithm."""

import pytest

from precise_rag.index import DenseIndex, WordSentenceIndex
from precise_rag.index.words import load_stop_words
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

DOCUMENTS = [
    Document("a", "The cat sat on the mat. It purred. The dog barked at the cat."),
    Document("b", "Interest rates rose. The bank of the river flooded. A dog swam."),
]


def test_candidates_share_a_token_that_is_not_a_stop_word() -> None:
    index = WordSentenceIndex.build(DOCUMENTS, HashEncoder())
    texts = {c.text for c in index.search("Where was the cat?", 10)}
    assert texts == {"The cat sat on the mat.", "The dog barked at the cat."}
    assert index.search("where is it?", 10) == []
    assert index.search("", 10) == []


def test_equals_the_papers_algorithm() -> None:
    """Algorithm 1 in sets and loops, then cosine on what passed."""
    index = WordSentenceIndex.build(DOCUMENTS, HashEncoder())
    stop_words = load_stop_words("english")
    rows = DenseIndex.build(DOCUMENTS, HashEncoder(), chunks="sentences").search("x", 100)

    def tokens(text: str) -> set[str]:
        pieces = index.scheme._tokenizer.encode(text, add_special_tokens=False).tokens
        return {p for p in pieces if p not in stop_words and any(c.isalnum() for c in p)}

    for query in ("dog and cat", "river bank interest", "Did the mat purr?"):
        passed = [row for row in rows if tokens(row.text) & tokens(query)]
        vector = HashEncoder().encode_queries([query])[0]
        expected = {row.id: float(HashEncoder().encode([row.text])[0] @ vector) for row in passed}
        assert {c.id: c.score for c in index.search(query, 100)} == pytest.approx(expected, abs=1e-6)
        assert len(index.candidate_rows(query)) == len(passed)


def test_stop_words_of_other_languages_may_be_several_tokens() -> None:
    """BERT's English vocabulary cuts "nicht" in two and takes the dots from "über"."""
    documents = [Document("de", "Das Boot liegt nicht am Ufer. Wir reden über Nichten.")]
    index = WordSentenceIndex.build(documents, HashEncoder(), stop_words=("nicht", "über", "am", "wir"))
    assert index.search("Nicht über uns!", 10) == []
    assert [c.text for c in index.search("Wo ist das Boot nicht?", 10)] == ["Das Boot liegt nicht am Ufer."]


def test_min_overlap_and_max_candidates_narrow() -> None:
    index = WordSentenceIndex.build(DOCUMENTS, HashEncoder(), min_overlap=2)
    assert [c.text for c in index.search("dog and cat", 10)] == ["The dog barked at the cat."]
    capped = WordSentenceIndex.build(DOCUMENTS, HashEncoder(), max_candidates=1)
    # "river" is in one sentence and "dog" in two, so the rarer one wins
    assert [c.text for c in capped.search("dog river", 10)] == ["The bank of the river flooded."]
    plain = WordSentenceIndex.build(DOCUMENTS, HashEncoder())
    capped = WordSentenceIndex.build(DOCUMENTS, HashEncoder(), max_candidates=6)
    expected = {c.id: c.score for c in plain.search("dog and cat")}
    assert {c.id: c.score for c in capped.search("dog and cat")} == pytest.approx(expected)
