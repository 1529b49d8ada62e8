import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precise_rag.errors import InputError
from precise_rag.index.arrays.bm25_matrix import BM25Matrix, BM25Settings, bm25_scores, counted_words


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(0, 11), max_size=9), min_size=1, max_size=12),
    query=st.sets(st.integers(0, 15), max_size=5),
)
def test_scores_equal_its_formula(rows: list[list[int]], query: set[int]) -> None:
    """sum of idf * tf / (tf + k1 * (1 - b + b * length / mean)), idf = ln(1 + (N - df + .5) / (df + .5))"""
    terms = np.array([term for row in rows for term in row], dtype=np.int32)
    lengths = np.array([len(row) for row in rows])
    index = BM25Matrix(counted_words({"words.values": terms, "words.lengths": lengths}, 12))
    mean = lengths.mean() or 1

    def score(row: list[int]) -> float:
        total = 0.0
        for term in query & set(row):
            df = sum(term in other for other in rows)
            tf = row.count(term)
            idf = math.log(1 + (len(rows) - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + 1.2 * (0.3 + 0.7 * len(row) / mean))
        return total

    asked, settings = [np.array(sorted(query))], BM25Settings(k1=1.2, b=0.7)
    (got,) = bm25_scores([index], [None], asked, settings)
    np.testing.assert_allclose(got, [score(row) for row in rows], rtol=1e-4, atol=1e-6)


def counted(rows: list[np.ndarray]) -> BM25Matrix:
    lengths = np.array([len(row) for row in rows])
    return BM25Matrix(counted_words({"words.values": np.concatenate(rows), "words.lengths": lengths}, 9))


def test_segments_score_as_one_matrix_and_as_bm25s_without_what_is_deleted() -> None:
    random = np.random.default_rng(0)
    rows = [random.integers(0, 9, random.integers(1, 7)) for _ in range(40)]
    alive = random.random(40) < 0.7
    corpus = [[str(word) for word in row] for row, stays in zip(rows, alive, strict=True) if stays]
    matrix = pytest.importorskip("bm25s").BM25(method="lucene", k1=1.5, b=0.75)
    matrix.index(corpus, show_progress=False)
    expected = matrix.get_scores(["2", "5", "8"])
    parts = [slice(0, 25), slice(25, 40)]
    matrices = [counted(rows[part]) for part in parts]
    found = bm25_scores(matrices, [alive[part] for part in parts], [np.array([2, 5, 8])] * 2, BM25Settings())
    np.testing.assert_allclose(np.concatenate(found)[alive], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("name", "value"), [("k1", -1.0), ("b", -0.1), ("b", 1.1)])
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{name} must be .*, got {value}"):
        BM25Settings(**{name: value})
