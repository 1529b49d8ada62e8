import numpy as np

from precise_rag.index.arrays.postings import Postings, idf


def test_each_term_has_the_rows_that_contain_it() -> None:
    rows = [[2, 0, 2], [], [2, 1], [0]]
    terms = np.array([term for row in rows for term in row], dtype=np.int32)
    postings = Postings.of(terms, np.array([len(row) for row in rows]), 4)
    assert [postings.rows_of(term).tolist() for term in range(4)] == [[0, 3], [2], [0, 2], []]
    assert postings.overlap(np.array([0, 2]), 1).tolist() == [True, False, True, True]
    assert postings.overlap(np.array([0, 2]), 2).tolist() == [True, False, False, False]
    assert postings.counts.tolist() == [1, 1, 1, 2, 1]
    terms = np.array([0, 1, 2, 3, -1, 9])
    assert postings.frequencies(terms).tolist() == [2, 1, 2, 0, 0, 0]
    assert postings.frequencies(terms, np.array([False, True, True, True])).tolist() == [1, 1, 1, 0, 0, 0]


def test_rare_terms_weigh_more() -> None:
    frequencies = np.array([2, 1, 2, 0])
    np.testing.assert_allclose(
        idf(frequencies, 4), np.log(1 + (4 - frequencies + 0.5) / (frequencies + 0.5)), rtol=1e-6
    )
