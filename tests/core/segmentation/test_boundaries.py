from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.segmentation.boundaries import choose_cuts
from precise_rag.segmentation.features import cohesion, pair_features, shifted
from precise_rag.segmentation.long_sentences import cut_long
from precise_rag.vectors import unit_rows


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


def test_min_tokens_joins_crumbs_to_the_better_side() -> None:
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


def test_pair_features_by_hand() -> None:
    left, right = np.array([[1.0, 2.0]], dtype=np.float32), np.array([[3.0, -1.0]], dtype=np.float32)
    assert pair_features(left, right, ("x1", "x2", "x1-x2", "x1*x2")).tolist() == [
        [1, 2, 3, -1, -2, 3, 3, -2]
    ]
    assert pair_features(left, right, ("x1*x2",)).tolist() == [[3, -2]]


def test_cohesion_compares_sums_of_windows() -> None:
    rows = unit_rows(np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32))
    found = cohesion(rows, (1, 2, 4))
    for column, window in enumerate((1, 2, 4)):
        for gap in range(8):
            before = rows[max(gap + 1 - window, 0) : gap + 1].sum(0)
            after = rows[gap + 1 : gap + 1 + window].sum(0)
            cosine = before @ after / np.linalg.norm(before) / np.linalg.norm(after)
            assert found[gap, column] == pytest.approx(cosine, abs=1e-5)


def test_shifted_moves_zeros_in() -> None:
    rows = np.array([[1.0], [2.0], [3.0]], dtype=np.float32)
    assert [shifted(rows, k).ravel().tolist() for k in (1, -2, 0)] == [[0, 1, 2], [3, 0, 0], [1, 2, 3]]


def test_long_sentences_are_halved_between_words() -> None:
    text = "one two three four. five"
    spans, counts = np.array([[0, 20], [20, 24]]), np.array([4, 1])
    rows, lengths, owners = cut_long(text, spans, counts, 2, lambda texts: [len(t.split()) for t in texts])
    assert [text[a:b] for a, b in rows.tolist()] == ["one two ", "three four. ", "five"]
    assert (lengths.tolist(), owners.tolist()) == ([2, 2, 1], [0, 0, 1])


def test_white_space_is_split_off_only_where_it_does_not_fit() -> None:
    def pieces(text: str, limit: int) -> list[str]:
        rows = cut_long(
            text, np.array([[0, len(text)]]), np.array([len(text)]), limit, lambda t: list(map(len, t))
        )[0]
        return [text[a:b] for a, b in rows.tolist()]

    assert pieces(" 01:01:000000", 7) == [" 01:01:", "000000"]
    assert pieces("gas" + " " * 6, 4) == ["gas", "   ", "   "]
    assert pieces("a  ", 1) == ["a", " ", " "]
