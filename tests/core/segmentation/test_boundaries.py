from itertools import combinations, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.segmentation.boundaries import choose_cuts


def cuts(gains: list[float], lengths: list[int], **limits: object) -> list[int]:
    return choose_cuts(np.array(gains), np.array(lengths), **limits).tolist()


def test_without_limits_each_gap_decides_for_itself() -> None:
    assert cuts([0.5, -0.1, 0.0, 2.0], [5, 5, 5, 5, 5]) == [0, 3]
    assert cuts([], [7]) == []


def test_max_tokens_takes_the_least_bad_cuts() -> None:
    # 4 sentences of 10 tokens, at most 20: one cut in the middle (-3) or two at the sides (-1 - 1).
    assert cuts([-1, -3, -1], [10] * 4, max_tokens=20) == [0, 2]
    assert cuts([-1, -1.5, -1], [10] * 4, max_tokens=20) == [1]
    assert cuts([-1, -3, -1], [10] * 4, max_tokens=9) == [0, 1, 2]


def test_min_tokens_joins_short_segments_to_the_better_side() -> None:
    assert cuts([2, 1], [10, 3, 10], min_tokens=5) == [0]
    assert cuts([1, 2], [10, 3, 10], min_tokens=5) == [1]
    assert cuts([1, 2], [10, 3, 10], min_tokens=5, max_tokens=12) == [0, 1]


def test_forced_cuts_come_first() -> None:
    assert cuts([-9, 5, -9], [1, 1, 1, 1], min_tokens=3, forced=np.array([True, False, False])) == [0]


def objective(chosen: tuple[int, ...], gains: list[float], lengths: list[int], low: int, high: int) -> tuple:
    edges = [0, *(gap + 1 for gap in chosen), len(lengths)]
    sizes = [(sum(lengths[i:j]), j - i) for i, j in pairwise(edges)]
    allowed = all(size <= high or n == 1 for size, n in sizes)
    return allowed, -sum(size < low for size, _ in sizes), sum(gains[gap] for gap in chosen)


@given(
    st.lists(st.tuples(st.integers(-8, 8), st.integers(1, 9), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 20),
    st.integers(0, 8),
)
def test_cuts_are_the_best_of_all_possible(rows: list[tuple[int, int, bool]], high: int, low: int) -> None:
    gains = [float(gain) for gain, _, _ in rows[1:]]
    lengths = [length for _, length, _ in rows]
    forced = [must for _, _, must in rows[1:]]
    found = cuts(gains, lengths, max_tokens=high, min_tokens=low, forced=np.array(forced, dtype=bool))
    musts = {gap for gap, must in enumerate(forced) if must}
    every = (chosen for k in range(len(lengths)) for chosen in combinations(range(len(gains)), k))
    best = max(objective(chosen, gains, lengths, low, high) for chosen in every if musts <= set(chosen))
    assert musts <= set(found)
    assert objective(tuple(found), gains, lengths, low, high) == best
