import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from precise_rag.checkpoints import load_checkpoint, packaged_model, save_checkpoint
from precise_rag.errors import InputError, ModelError
from precise_rag.rerank import load_reranker, rerank
from precise_rag.rerank.cascade import CascadeReranker
from precise_rag.rerank.logistic_regression import log_odds
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pairs import Piece
from precise_rag.rerank.query_terms import alone_with_code, begins_with_name
from precise_rag.types import Candidate
from support.documents import read_cases
from support.rerankers import LAMP as TEXTS
from support.rerankers import WHOSE_LAMP as QUESTION


def candidates(texts: Sequence[str]) -> list[Candidate]:
    return [Candidate("doc", 100 * i, 100 * i + len(t), t, 0.0, "rank") for i, t in enumerate(texts)]


def saved(folder: Path, **blend: float) -> Path:
    """Save a cascade without a network and with a blend of its own; returns the folder."""
    unread = {"packaged": 1.0, "offset": -1.0}
    by_words = {name: weight for name, weight in blend.items() if name != "dense"}
    config = {"blend": blend, "blend_words": by_words, "unread": unread, "network_sha256": ""}
    save_checkpoint(folder, config, {})
    return folder


@pytest.mark.parametrize(("asked", "right"), read_cases("reranking.json", "asked"))
def test_each_language_is_read(asked: str, right: int) -> None:
    texts = read_cases("reranking.json", "languages")
    others = ["Bread is dear.", "Das Brot ist teuer.", "Хлеб подорожал.", "面包涨价了。", "الخبز غالي الثمن."]
    scores = load_reranker("cascade").score(asked, candidates([*texts, *others]))
    assert scores.argmax() == right
    assert scores[right] > 0.2 > scores[5:].max()


def test_what_the_search_and_the_packaged_reranker_put_first_is_read_by_turns(tmp_path: Path) -> None:
    cascade = CountingCascade(saved(tmp_path, reads=1.0), n_read=6)
    texts = [f"{n} lamps of the harbour"[: 23 - n // 2] for n in range(30)]
    given = [replace(one, score=float(n)) for n, one in enumerate(candidates(texts))]
    rows, _, packaged, _ = cascade.shortlist(QUESTION, given)
    assert set(rows) == {*range(27, 30), *np.argsort(-packaged, kind="stable")[:3]}


def test_what_is_not_read_stands_in_the_order_of_the_packaged_reranker_and_search(tmp_path: Path) -> None:
    cascade = CountingCascade(saved(tmp_path, reads=1.0), n_read=4)
    given = [
        replace(one, score=n / 9) for n, one in enumerate(candidates([f"{n % 5} lamps" for n in range(20)]))
    ]
    rows, _, packaged, _ = cascade.shortlist(QUESTION, given)
    rest = np.setdiff1d(np.arange(20), rows)
    expected = packaged[rest] - np.log2(20 - rest)
    ordered = cascade.score(QUESTION, given)[rest][np.argsort(expected)]
    assert (np.diff(ordered) >= 0).all()
    assert ordered[-1] > ordered[0]
    of_two_texts = [replace(one, score=float(n > 9)) for n, one in enumerate(given)]
    _, _, packaged, order = cascade.shortlist(QUESTION, of_two_texts)
    np.testing.assert_array_equal(order, packaged)


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


@pytest.mark.parametrize(("runs", "read"), read_cases("reranking.json", "runs of logits"))
def test_reading_stops_when_four_in_a_row_are_much_less_probable_than_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[tuple[int, int]], read: list[int]
) -> None:
    logits = [logit for logit, times in runs for _ in range(times)]
    falling = np.linspace(0.9, 0.5, len(logits), dtype=np.float32)
    score = lambda self, query, given: falling[: len(given)].copy()  # noqa: E731
    fake = type("Packaged", (), {"score": score, "idf_table": np.zeros(1, dtype=np.uint8)})
    monkeypatch.setattr("precise_rag.rerank.cascade.packaged_reranker", fake)
    given = [
        replace(one, score=float(score), scores={"dense": 0.5})
        for one, score in zip(candidates([f"{logit} text" for logit in logits]), falling, strict=True)
    ]
    folder = saved(tmp_path, reads=1.0)
    cascade = CountingCascade(folder, n_read=20)
    scores = cascade.score(QUESTION, given)
    assert cascade.n_texts == read
    n_read = sum(read)
    assert scores[n_read:] == pytest.approx(1 / (1 + np.exp(1.0 - log_odds(falling[n_read:]))), rel=1e-4)
    whole = CountingCascade(folder, least=0)
    whole.score(QUESTION, given)
    assert sum(whole.n_texts) == min(24 if max(logits) > 0 else 36, len(logits))
    assert len(whole.score(QUESTION, [])) == 0


def test_what_no_search_has_compared_is_compared_by_meaning_in_any_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    german = read_cases("reranking.json", "in German")
    cascade = CascadeReranker(saved(tmp_path, dense=10.0, offset=-4.0))
    monkeypatch.setattr(cascade, "logits", lambda query, pieces: np.zeros(len(pieces), dtype=np.float32))
    given = candidates(german)
    assert cascade.score(QUESTION, given).argmax() == 2
    told = [replace(given[0], scores={"dense": 0.9}), *given[1:]]
    assert cascade.score(QUESTION, told).argmax() == 0
    monkeypatch.setattr("precise_rag.rerank.cascade._COMPARED", 30)
    many = candidates([f"{number}. {text}" for number in range(10) for text in german])
    dense = cascade.shortlist(QUESTION, many).columns["dense"]
    assert len(dense) == 30
    assert not np.isnan(dense).any()
    monkeypatch.setattr("precise_rag.rerank.candidate_texts._COMPARED_TOKENS", 60)
    assert 0 < len(cascade.shortlist(QUESTION, many).rows) < 10


def test_nothing_is_compared_where_the_words_find_something_likely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cascade = CascadeReranker(saved(tmp_path, packaged=1.0, dense=10.0))
    monkeypatch.setattr(cascade, "logits", lambda query, pieces: np.zeros(len(pieces), dtype=np.float32))
    given = candidates(["The museum shows paintings.", "The keeper of the harbour light is Ilse Brandt."])
    asked = "Who is the keeper of the harbour light?"
    assert np.isnan(cascade.shortlist(asked, given).columns["dense"]).all()
    assert cascade.score(asked, given).argmax() == 1


def test_where_nothing_that_is_read_is_likely_meaning_chooses_what_is_read_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = lambda self, query, given: np.linspace(0.9, 0.1, len(given), dtype=np.float32)  # noqa: E731
    fake = type("Packaged", (), {"score": score, "idf_table": np.zeros(1, dtype=np.uint8)})
    monkeypatch.setattr("precise_rag.rerank.cascade.packaged_reranker", fake)
    cascade = CountingCascade(saved(tmp_path, reads=1.0), n_read=4)
    texts = [
        *(f"-9 Bread costs {number} pence." for number in range(30)),
        "-8 Den Leuchtturm hütet Ilse Brandt.",
    ]
    rows, columns, *_ = cascade.shortlist("Who is the keeper of the harbour light?", candidates(texts))
    assert sorted(rows[:4]) == [0, 1, 2, 3]
    assert 30 in rows[4:]
    assert np.isnan(columns["dense"]).all()


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path, reads=1.0)
    with pytest.raises(InputError, match="n_read must be at least 1, got 0"):
        CascadeReranker(folder, n_read=0)
    shutil.copy(packaged_model("reranker-cascade") / "model.onnx", folder)
    with pytest.raises(ModelError, match="is not of its weights"):
        CascadeReranker(folder, device="cpu").load_model()


def test_the_packaged_cascade_was_fitted_to_this_packaged_reranker() -> None:
    config, _ = load_checkpoint(packaged_model("reranker-cascade"))
    assert config["packaged_sha256"] == packaged_reranker().weights_sha256


@pytest.mark.parametrize(("query", "texts", "alone"), read_cases("reranking.json", "codes"))
def test_a_code_or_the_name_of_a_row_counts_where_one_text_alone_holds_it_whole(
    query: str, texts: list[str], alone: list[int]
) -> None:
    assert alone_with_code(query, texts).tolist() == alone


@pytest.mark.parametrize(("query", "texts", "shares"), read_cases("reranking.json", "names"))
def test_a_text_that_begins_with_what_the_query_names_counts_as_much_as_few_do(
    query: str, texts: list[str], shares: list[float]
) -> None:
    assert begins_with_name(query, texts).tolist() == shares


@pytest.mark.parametrize("form", ["| {} | motor blocked | {} V |", "- {}: belt torn, {} V"])
def test_the_row_of_a_code_is_first_and_probable_wherever_the_search_found_it(form: str) -> None:
    given = candidates([form.format(f"E{4000 + 37 * n}", 10 + n) for n in range(60)])
    ranked = rerank(f"What does error E{4000 + 37 * 59} mean?", given, load_reranker("cascade"))
    assert ranked[0].text == given[59].text
    assert ranked[0].score > 0.2 > 2 * ranked[1].score
