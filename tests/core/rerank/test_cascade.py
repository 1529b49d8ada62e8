from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from precise_rag.checkpoints.saved import load_checkpoint, packaged_model, save_checkpoint
from precise_rag.errors import InputError, ModelError
from precise_rag.rerank import load_reranker
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pairs import Piece
from precise_rag.types import Candidate

Save = Callable[..., Path]
QUESTION = "Who keeps the lamp of the harbour?"
TEXTS = [
    "Ilse Brandt has kept the lamp of the harbour since the spring.",
    "The lamp is lit at dusk.",
    "Bread prices rose in the valley after the long winter. " * 40,
    "Two ferries cross the river every hour.",
]


def candidates(texts: Sequence[str]) -> list[Candidate]:
    return [Candidate("doc", 100 * i, 100 * i + len(t), t, 0.0, "rank") for i, t in enumerate(texts)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, untrained: Callable[..., dict[str, np.ndarray]]) -> Save:
    """Save an untrained cascade with a blend of its own; returns the folder."""

    def save(**blend: float) -> Path:
        folder, unread = tmp_path_factory.mktemp("cascade"), {"packaged": 1.0, "offset": -1.0}
        config = {"n_layers": 6, "n_apart": 3, "blend": blend, "unread": unread}
        config["latin"] = {"odds": 2.0, "offset": 0.5}
        save_checkpoint(folder, config, untrained())
        return folder

    return save


def test_texts_in_another_script_are_left_to_the_packaged_one(saved: Save) -> None:
    cascade = CountingCascade(saved(reads=1.0))
    given = candidates(["9 lamps", "Хлеб подорожал.", "8 harbours"])
    scores = cascade.score(QUESTION, given)
    assert cascade.n_texts == [2]
    assert scores[1] == pytest.approx(packaged_reranker().score(QUESTION, given)[1])
    asked = "Кто хранит лампу?"
    assert cascade.score(asked, given) == pytest.approx(packaged_reranker().score(asked, given))
    assert cascade.n_texts == [2]


def test_another_language_has_levels_of_its_own_and_the_same_order(saved: Save) -> None:
    cascade = CascadeReranker(saved(reads=1.0, packaged=0.5), n_read=2, least=0.0)
    german = ["Die Lampe wird von Ilse gehütet.", "Das Brot ist teuer.", "Der Fluss und die Stadt."]
    rows, columns, packaged, is_english = cascade.shortlist("Wer hütet die Lampe?", candidates(german))
    assert not is_english
    odds = np.array(log_odds(packaged)) - 1.0
    odds[rows] = columns["reads"] + 0.5 * columns["packaged"]
    scores = cascade.score("Wer hütet die Lampe?", candidates(german))
    assert log_odds(scores) == pytest.approx(2.0 * odds + 0.5, abs=1e-2)


def scores_of(place: int) -> dict[str, float]:
    """What a retrieval says of a candidate, the less the later it comes."""
    dense, words = 0.6 - place / 80, 6 - place / 8
    return {"dense": dense, "core": dense - 0.1, "bm25": words, "bm25_passage": 4 - place / 9}


def test_hostile_documents_hardly_move_the_scores_of_others() -> None:
    texts = [*TEXTS, *(f"A note of day {n} in the log." for n in range(35))]
    mine = [
        replace(c, doc_id=f"d{i % 9}", start=1000 * i, end=1000 * i + len(c.text), scores=scores_of(i))
        for i, c in enumerate(candidates(texts))
    ]
    hostile = [
        Candidate(f"evil{i}", 0, len(text), text, 9.0, "rank", scores=dict.fromkeys(scores_of(0), 9.0))
        for i, text in enumerate([f"{QUESTION} {QUESTION}", "x", f"{QUESTION} Ilse Brandt.", QUESTION, "No."])
    ]
    for reranker in (packaged_reranker(), load_reranker("cascade")):
        alone = reranker.score(QUESTION, mine)
        beside = reranker.score(QUESTION, [*hostile, *mine])[len(hostile) :]
        best = int(np.argmax(alone))
        assert best == np.argmax(beside)
        assert beside[best] == pytest.approx(alone[best], abs=0.02)


class CountingCascade(CascadeReranker):
    """A cascade whose cross-encoder gives logits that are told to it, and counts the texts."""

    def logits(self, query: str, pieces: Sequence[Piece]) -> np.ndarray:
        self.n_texts = [*getattr(self, "n_texts", []), len(pieces)]
        return np.array([float(piece.text.split()[0]) for piece in pieces], dtype=np.float32)


@pytest.mark.parametrize(
    ("logits", "read"),
    [
        ([9.0] * 30, [8, 4, 4, 4]),
        ([-9.0] * 30, [8, 4, 4, 4]),
        ([-9.0] * 8 + [9.0] * 4 + [-9.0] * 18, [8, 4, 4]),
        ([-5.0] + [-9.0] * 29, [8]),
        ([9.0] * 7 + [-9.0] * 23, [8, 4]),
        ([-9.0] * 4 + [9.0] * 5 + [-9.0] * 9, [8, 4, 4]),
        ([9.0] * 10, [8, 2]),
        ([9.0] * 3, [3]),
    ],
)
def test_reading_stops_when_four_in_a_row_are_much_less_probable_than_the_best(
    saved: Save, monkeypatch: pytest.MonkeyPatch, logits: list[float], read: list[int]
) -> None:
    falling = np.linspace(0.9, 0.5, len(logits), dtype=np.float32)
    score = lambda self, query, given: falling[: len(given)].copy()  # noqa: E731
    fake = type("Packaged", (), {"as_in_english": score, "idf_table": np.zeros(1, dtype=np.uint8)})
    monkeypatch.setattr("precise_rag.rerank.cascade.packaged_reranker", fake)
    given = candidates([f"{logit} text" for logit in logits])
    folder = saved(reads=1.0)
    cascade = CountingCascade(folder, n_read=20)
    scores = cascade.score(QUESTION, given)
    assert cascade.n_texts == read
    n_read = sum(read)
    assert scores[n_read:] == pytest.approx(1 / (1 + np.exp(1.0 - log_odds(falling[n_read:]))), rel=1e-4)
    whole = CountingCascade(folder, least=0)
    whole.score(QUESTION, given)
    assert sum(whole.n_texts) == min(24, len(logits))
    assert len(whole.score(QUESTION, [])) == 0


def test_settings_that_do_not_fit_are_refused(
    tmp_path: Path, saved: Save, untrained: Callable[..., dict[str, np.ndarray]]
) -> None:
    with pytest.raises(InputError, match="n_read must be at least 1, got 0"):
        CascadeReranker(saved(reads=1.0), n_read=0)
    config = {"n_layers": 2, "n_apart": 3, "blend": {"reads": 1.0}, "unread": {"packaged": 1.0}, "latin": {}}
    save_checkpoint(tmp_path, config, untrained())
    with pytest.raises(ModelError, match="unknown tensors"):
        CascadeReranker(tmp_path)


def test_the_packaged_cascade_prefers_the_answer_and_was_fitted_to_this_packaged_reranker() -> None:
    scores = load_reranker("cascade").score(QUESTION, candidates(TEXTS))
    assert scores.argmax() == 0
    assert scores[0] > 0.4 > 0.2 > scores[2:].max()
    config, _ = load_checkpoint(packaged_model("reranker-cascade"))
    assert config["packaged_sha256"] == packaged_reranker().weights_sha256
