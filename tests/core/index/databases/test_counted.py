"""Words as bytes of a row, and their BM25 at three scales."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.index.bm25 import BM25Settings
from precise_rag.index.databases.counted import HEAD_BYTES, CountedRows, bm25, packed, unpacked, usual

Row = tuple[dict[int, tuple[int, int, int]], list[int], list[int]]
"""Words with how often they are there at each scale; words of each text; sentences of each."""

_WORDS = st.dictionaries(st.integers(1, 2**29), st.tuples(*[st.integers(0, 255)] * 3), max_size=9)
_NUMBERS = st.lists(st.integers(0, 2**31 - 1), min_size=3, max_size=3)


def counted(*rows: Row) -> CountedRows:
    terms = [sorted(words) for words, _, _ in rows]
    counts = [words[term] for words, _, _ in rows for term in sorted(words)]
    return CountedRows(
        np.array([lengths for _, lengths, _ in rows]).reshape(-1, 3),
        np.array([sizes for _, _, sizes in rows]).reshape(-1, 3),
        np.array([len(of_row) for of_row in terms], dtype=np.int64),
        np.array([term for of_row in terms for term in of_row], dtype=np.int32),
        np.array(counts, dtype=np.int64).reshape(-1, 3),
    )


def heads(*rows: Row) -> list[bytes]:
    return [as_bytes[:HEAD_BYTES] for as_bytes in packed(counted(*rows))]


@given(st.lists(st.tuples(_WORDS, _NUMBERS, _NUMBERS), max_size=5))
def test_rows_are_read_as_they_were_written(rows: list[Row]) -> None:
    written = counted(*rows)
    for ours, theirs in zip(unpacked(packed(written)), written, strict=True):
        assert ours.tolist() == theirs.tolist()


def test_texts_count_once_in_what_is_usual() -> None:
    """A passage of three sentences and one of a single sentence; both are one text of surroundings."""
    long: list[Row] = [({}, [n, 12, 16], [1, 3, 4]) for n in (3, 4, 5)]
    lengths, sizes = usual(heads(*long, ({}, [4, 4, 16], [1, 1, 4])))
    assert lengths == pytest.approx([4, 8, 16])
    assert sizes == pytest.approx([1, 2, 4])


def test_bm25_of_each_scale() -> None:
    """Of 40 sentences 10 have the word; of 20 passages of two 20 * (1 - 0.75 ** 2) = 8.75 are taken to."""
    rows: list[Row] = [({5: (1, 2, 0), 9: (0, 300, 0)}, [4, 8, 0], [1, 2, 0]), ({}, [4, 8, 0], [1, 2, 0])]
    settings = BM25Settings(k1=1.5, b=0.75)
    found = bm25(counted(*rows), np.array([5, 7]), np.array([10, 3]), 40, usual(heads(*rows)), settings)
    assert found[0] == pytest.approx([math.log1p(30.5 / 10.5) / (1 + 1.5), 0], rel=1e-6)
    assert found[1] == pytest.approx([math.log1p(11.75 / 9.25) * 2 / (2 + 1.5), 0], rel=1e-6)
    assert found[2] == pytest.approx([0, 0])
    none = np.zeros(0, dtype=np.int64)
    without_words = bm25(counted(*rows), none, none, 40, usual(heads(*rows)), settings)
    assert [scores.tolist() for scores in without_words] == [[0, 0]] * 3


def test_a_word_is_counted_up_to_255() -> None:
    rows = packed(counted(({5: (1, 254, 300)}, [1, 300, 400], [1, 2, 3])))
    assert unpacked(rows).counts.tolist() == [[1, 254, 255]]
