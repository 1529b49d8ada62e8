import numpy as np
import pytest

from training.reranker.levels import fit_levels


def judged(scale: float, offset: float, seed: int) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Lists whose log-odds, times `scale` and plus `offset`, are those of their relevant candidates."""
    random = np.random.default_rng(seed)
    odds = random.normal(-1.0, 2.0, (400, 50)).astype(np.float32)
    relevant = random.random(odds.shape) < 1.0 / (1.0 + np.exp(-(scale * odds + offset)))
    return [(row, truth, 1.0) for row, truth in zip(odds, relevant, strict=True)]


def test_levels_say_what_log_odds_of_a_language_mean_in_english() -> None:
    english, latin = judged(2.0, 1.0, 0), judged(3.0, -1.0, 1)
    levels = fit_levels({"english": english, "latin": latin, "spaced": []})
    assert levels.keys() == {"latin"}
    assert levels["latin"]["odds"] == pytest.approx(1.5, abs=0.1)
    assert levels["latin"]["offset"] == pytest.approx(-1.0, abs=0.1)
    levels = fit_levels({"english": judged(1.0, 0.0, 0), "spaced": judged(1.0, 0.0, 1)})
    assert levels["spaced"]["odds"] == pytest.approx(1.0, abs=0.05)
    assert levels["spaced"]["offset"] == pytest.approx(0.0, abs=0.05)
