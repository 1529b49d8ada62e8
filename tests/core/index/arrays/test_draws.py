import numpy as np

from precise_rag.index.arrays.draws import LARGEST, LOTTERY, draws, lottery, seeds_of
from precise_rag.index.arrays.top import fair_rows


def test_draws_depend_on_the_document_and_the_place_alone() -> None:
    ids, places = ["a", "a", "a", "b", "b"], [0, 1, 2, 0, 1]
    drawn = draws(seeds_of(ids), places)
    other = draws(seeds_of(["b", "a"]), [1, 2])
    assert other.tolist() == [drawn[4], drawn[2]]
    assert len(set(drawn.tolist())) == len(ids)


def test_draws_are_spread_evenly() -> None:
    drawn = draws(seeds_of(["one"]).repeat(20_000), range(20_000)) / LARGEST
    shares, _ = np.histogram(drawn, bins=10, range=(0, 1))
    assert abs(shares / 20_000 - 0.1).max() < 0.01
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.03


def test_a_lottery_is_within_its_range() -> None:
    numbers = lottery(["a"] * 500, range(-1, 499))
    assert min(numbers) >= 0
    assert max(numbers) < LOTTERY
    assert len(set(numbers)) == 500


def test_of_equal_scores_those_with_the_lowest_draws_are_taken() -> None:
    scores = np.array([1, 3, 1, 1, 2, 1], dtype=np.float32)
    drawn = np.array([5, 9, 1, 4, 8, 2])
    assert fair_rows(scores, 4, lambda rows: drawn[rows]).tolist() == [1, 2, 4, 5]
    assert fair_rows(scores, 2, lambda rows: drawn[rows]).tolist() == [1, 4]
    assert fair_rows(scores, 9, lambda rows: drawn[rows]).tolist() == [0, 1, 2, 3, 4, 5]


def test_among_many_equal_scores_the_lowest_draws_are_found() -> None:
    drawn = draws(seeds_of(["one"]).repeat(5_000), range(5_000))
    rows = fair_rows(np.zeros(5_000, dtype=np.float32), 20, lambda rows: drawn[rows])
    assert sorted(drawn[rows].tolist()) == sorted(drawn.tolist())[:20]
