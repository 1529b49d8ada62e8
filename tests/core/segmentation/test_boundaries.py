from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precise_rag.segmentation.boundaries import choose_cuts
from precise_rag.segmentation.features import closeness, cohesion
from precise_rag.segmentation.word_pieces import WordPieces, split_words_and_marks, train_word_pieces
from precise_rag.vectors import unit_rows


def cuts(gains: list[float], lengths: list[int], **limits: object) -> list[int]:
    free = {"max_tokens": sum(lengths), "min_tokens": 0, "target_tokens": 0, "short_cost": 1e4}
    forced = np.zeros(len(gains), dtype=bool)
    return choose_cuts(np.array(gains), np.array(lengths), **free | {"forced": forced} | limits).tolist()


def test_without_limits_each_gap_decides_for_itself() -> None:
    assert cuts([0.5, -0.1, 0.0, 2.0], [5, 5, 5, 5, 5]) == [0, 3]
    assert cuts([], [7]) == []


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


def test_cohesion_and_closeness_compare_windows_of_sentences() -> None:
    rows = unit_rows(np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32))
    cosines, lengths = cohesion(rows, (1, 2, 4)), closeness(rows, (1, 2, 4))
    assert (cosines.shape, lengths.shape) == ((9, 3), (9, 4))
    for column, window in enumerate((1, 2, 4)):
        for gap in range(8):
            before = rows[max(gap + 1 - window, 0) : gap + 1].mean(0)
            after = rows[gap + 1 : gap + 1 + window].mean(0)
            norms = np.linalg.norm(before), np.linalg.norm(after)
            assert cosines[gap, column] == pytest.approx(before @ after / np.prod(norms), abs=1e-5)
            if window > 1:
                assert lengths[gap, 2 * column - 2 : 2 * column] == pytest.approx(norms, abs=1e-5)


def test_words_are_split_into_the_longest_pieces() -> None:
    words = ["it", "'", "s", "你", "好", ",", "naïve", *"ตัว", "!"]
    assert split_words_and_marks("It's 你好, naïve ตัว!") == words
    pieces = WordPieces(["[UNK]", "play", "##ing", "##s", "p"])
    found = [pieces[word] for word in ("playing", "plays", "pz", "zzz")]
    assert found == [(1, 2), (1, 3), (4, 0), (0, 0, 0)]
    ids, offsets, _ = pieces.encode(["Playing plays", "", "x" * 1000])
    assert ids[:5].tolist() == [1, 2, 1, 3, 0]
    assert offsets.tolist() == [0, 4, 5, 133]


def test_frequent_words_become_one_piece() -> None:
    pieces = train_word_pieces(["the cat and the dog"] * 50 + ["zyzzyva"], 60)
    assert len(pieces["the"]) == len(pieces["cat"]) == 1 < len(pieces["zyzzyva"])
