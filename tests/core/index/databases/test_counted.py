"""Words as bytes of a row, and their BM25 at three scales."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.index.arrays.bm25_matrix import BM25Settings
from precise_rag.index.databases.counted import bm25, packed, unpacked, usual

_ROW = st.dictionaries(st.integers(1, 2**29), st.tuples(*[st.integers(0, 300)] * 3), max_size=9)
_NUMBERS = st.lists(st.integers(0, 2**31 - 1), min_size=3, max_size=3)


@given(st.lists(st.tuples(_ROW, _NUMBERS, _NUMBERS), max_size=5))
def test_rows_are_read_as_they_were_written(given: list[tuple[dict[int, tuple], list, list]]) -> None:
    rows = [
        packed(
            np.array(sorted(words), dtype=np.int64),
            np.array([words[term] for term in sorted(words)], dtype=np.int64).reshape(-1, 3),
            np.array(lengths),
            np.array(sizes),
        )
        for words, lengths, sizes in given
    ]
    found = unpacked(rows)
    assert found.lengths.tolist() == [lengths for _, lengths, _ in given]
    assert found.sizes.tolist() == [sizes for _, _, sizes in given]
    assert found.n_terms.tolist() == [len(words) for words, _, _ in given]
    assert found.terms.tolist() == [term for words, _, _ in given for term in sorted(words)]
    counts = [[min(n, 255) for n in words[term]] for words, _, _ in given for term in sorted(words)]
    assert found.counts.tolist() == counts


def row(words: dict[int, tuple[int, int, int]], lengths: list[int], sizes: list[int]) -> bytes:
    terms = np.array(list(words), dtype=np.int64)
    counts = np.array(list(words.values()), dtype=np.int64).reshape(-1, 3)
    return packed(terms, counts, np.array(lengths), np.array(sizes))


def test_texts_count_once_in_what_is_usual() -> None:
    """A passage of three sentences and one of a single sentence; both are one text of surroundings."""
    long = [row({}, [n, 12, 16], [1, 3, 4]) for n in (3, 4, 5)]
    lengths, sizes = usual(unpacked([*long, row({}, [4, 4, 16], [1, 1, 4])]))
    assert lengths == pytest.approx([4, 8, 16])
    assert sizes == pytest.approx([1, 2, 4])


def test_bm25_of_each_scale() -> None:
    """Of 40 sentences 10 have the word; of 20 passages of two 20 * (1 - 0.75 ** 2) = 8.75 are taken to."""
    rows = unpacked([row({5: (1, 2, 0), 9: (0, 3, 0)}, [4, 8, 0], [1, 2, 0]), row({}, [4, 8, 0], [1, 2, 0])])
    settings = BM25Settings(k1=1.5, b=0.75)
    found = bm25(rows, np.array([5, 7]), np.array([10, 3]), 40, usual(rows), settings)
    assert found[0] == pytest.approx([math.log1p(30.5 / 10.5) / (1 + 1.5), 0], rel=1e-6)
    assert found[1] == pytest.approx([math.log1p(11.75 / 9.25) * 2 / (2 + 1.5), 0], rel=1e-6)
    assert found[2] == pytest.approx([0, 0])


def test_a_query_without_words_scores_nothing() -> None:
    rows = unpacked([row({5: (1, 1, 1)}, [1, 1, 1], [1, 1, 1])])
    none = np.zeros(0, dtype=np.int64)
    assert [scores.tolist() for scores in bm25(rows, none, none, 1, usual(rows), BM25Settings())] == [[0]] * 3
