import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.rerank.neighbours import Spans

REACH = 20
PIECES = st.lists(
    st.tuples(
        st.integers(0, 200), st.integers(0, 60), st.one_of(st.integers(-3, 3).map(float), st.just(math.nan))
    ),
    min_size=1,
    max_size=30,
)


def near(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return max(a[0], b[0]) - min(a[1], b[1]) < REACH


@given(PIECES)
def test_neighbours_are_those_of_every_pair(pieces: list[tuple[int, int, float]]) -> None:
    places = [(start, start + length) for start, length, _ in pieces]
    values = np.array([value for _, _, value in pieces])
    spans = Spans([start for start, _ in places], [end for _, end in places], REACH)
    best = spans.best_near(values)
    for row, place in enumerate(places):
        others = [i for i, other in enumerate(places) if i != row and near(place, other)]
        expected = values[others].max() if others else -math.inf
        np.testing.assert_equal(best[row], expected)
    rows = list(range(0, len(pieces), 3))
    expected_near = [any(near(place, places[row]) for row in rows) for place in places]
    assert spans.has_near(rows).tolist() == expected_near


def test_a_piece_is_no_neighbour_of_itself() -> None:
    spans = Spans([0, 10, 500], [10, 20, 510], REACH)
    assert spans.best_near(np.array([1.0, 2.0, 3.0])).tolist() == [2.0, 1.0, -math.inf]
    assert spans.has_near([0]).tolist() == [True, True, False]
