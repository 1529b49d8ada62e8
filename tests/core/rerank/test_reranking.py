from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from precise_rag.errors import InputError
from precise_rag.rerank import load_reranker, rerank, rerank_best, unread_note
from precise_rag.rerank.language import language_of, mostly_latin, script_of
from precise_rag.types import UNREAD, Candidate, FloatArray, ScoreScale

TEXTS = ["a short one", "the longest of the three", "one in between"]
CANDIDATES = [Candidate("d", i, i + 1, text, 0.1 * i, "cosine") for i, text in enumerate(TEXTS)]


class ByLength:
    name = "by-length"
    score_scale: ScoreScale = "logit"

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        return np.array([len(c.text) for c in candidates], dtype=np.float32)


def test_rerank_orders_by_the_new_score_keeps_the_former_one_and_the_best() -> None:
    ranked = rerank("q", CANDIDATES, ByLength())
    assert [c.text for c in ranked] == sorted(TEXTS, key=len, reverse=True)
    assert [c.score for c in ranked] == pytest.approx([24, 14, 11])
    assert [c.scores["retrieval"] for c in ranked] == pytest.approx([0.1, 0.2, 0.0])
    assert [c.score for c in CANDIDATES] == pytest.approx([0.0, 0.1, 0.2])
    unchanged = replace(ranked[0], score=0.0, score_scale="cosine", scores={})
    assert unchanged == replace(CANDIDATES[1], score=0.0)
    assert {c.score_scale for c in ranked} == {"logit"}
    again = rerank("q", ranked, ByLength())
    assert again[0].scores == pytest.approx({"retrieval": 0.1, "reranked": 24})
    selection = rerank_best("q", CANDIDATES, ByLength(), 2)
    assert [(d.candidate.text, d.kept) for d in selection.decisions] == [
        (text, rank < 2) for rank, text in enumerate(sorted(TEXTS, key=len, reverse=True))
    ]
    assert selection.reasons[-1] == "rank 3 of 3 by by-length"
    assert len(rerank_best("q", CANDIDATES, ByLength(), None).kept) == 3


def test_a_reranker_must_return_one_score_per_candidate() -> None:
    assert rerank("q", [], ByLength()) == []

    class Short(ByLength):
        def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
            return np.zeros(1, dtype=np.float32)

    with pytest.raises(InputError, match="got 1 scores for 3 candidates"):
        rerank("q", CANDIDATES, Short())


NOT_READ = "ranked by words and order: the reranker does not read"


@pytest.mark.parametrize(
    ("query", "reranker", "unread", "note"),
    [
        ("Кто хранит лампу?", "packaged", 3, f"{NOT_READ} Cyrillic"),
        ("谁看守灯?", "packaged", 3, f"{NOT_READ} Chinese characters"),
        ("Кто хранит лампу?", "cascade", 0, ""),
        ("Who keeps it?", "packaged", 0, ""),
    ],
)
def test_what_is_not_read_is_marked_and_told(query: str, reranker: str, unread: int, note: str) -> None:
    texts = ["The lamp is lit by Ilse Brandt.", "Лампу хранит Ильзе Брандт.", "المصباح يضاء عند الغسق."]
    given = [Candidate("d", i, i + 1, text, 0.1 * i, "cosine") for i, text in enumerate(texts)]
    ranked = rerank(query, given, load_reranker(reranker))
    assert sum(UNREAD in c.scores for c in ranked) == unread
    assert unread_note(query, ranked) == note
    again = rerank(query, ranked, ByLength())
    assert not [c for c in again if UNREAD in c.scores]


class ByBestWord(ByLength):
    """Reads no more than the first word of a text; trained on short ones."""

    longest_text = 5

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        self.read = [c.text.strip() for c in candidates]
        return np.array([c.text.strip().startswith(query) for c in candidates], dtype=np.float32)


def test_a_long_text_is_as_good_as_its_best_sentence() -> None:
    texts = [
        "Oil first.",
        "Gas is cheap here. Oil is dear there. Coal is gone.",
        "Gas is cheap. No news today yet.",
    ]
    reranker = ByBestWord()
    candidates = [
        Candidate("d", 100 * n, 100 * n + len(t), t, 0.5, "cosine", scores={"dense": 0.5})
        for n, t in enumerate(texts)
    ]
    ranked = rerank("Oil", candidates, reranker)
    assert {c.text: c.score for c in ranked} == dict(zip(texts, [1.0, 1.0, 0.0], strict=True))
    assert reranker.read[:3] == ["Oil first.", "Gas is cheap here.", "Oil is dear there."]
    assert all(c.scores == {"dense": 0.5, "retrieval": 0.5} for c in ranked)


def test_the_packaged_reranker_finds_what_stands_late_in_a_long_text() -> None:
    filler = "The weather was mild and the road was dry on most of these days. " * 40
    late = filler + "Runa Stell carved the wheel of the mill in 1902."
    ranked = rerank(
        "Who carved the wheel of the mill?",
        [Candidate(str(n), 0, len(t), t, 0.0, "rank") for n, t in enumerate((filler, late))],
        load_reranker("packaged"),
    )
    assert [c.doc_id for c in ranked] == ["1", "0"]
    assert ranked[0].score > 2 * ranked[1].score


ENGLISH = ["The lamp is lit at dusk.", "Who has kept the lamp of the harbour?"]
GERMAN = ["Die Lampe wird in der Nacht angezündet.", "Wer hütet das Licht und die Lampe?"]
CODE = ["lamp.light(at=dusk)", "| lamp | 12 |"]


@pytest.mark.parametrize(
    ("query", "texts", "expected"),
    [
        ("Who keeps the lamp?", ENGLISH, "english"),
        ("Wer hütet die Lampe?", GERMAN, "latin"),
        ("Who keeps the lamp?", [" ".join(GERMAN * 50)] * 5 + ENGLISH * 4, "english"),
        ("¿Quién guarda la lámpara?", ["La lámpara se enciende por la noche.", "El pan es caro."], "latin"),
        ("من يحرس المصباح؟", ENGLISH, "spaced"),
        ("누가 등불을 지키나?", ENGLISH, "spaced"),
        ("谁看守灯?", ENGLISH, "unspaced"),
        ("ใครดูแลตะเกียง", ENGLISH, "unspaced"),
        ("lamp", CODE, "english"),
        ("lamp", [], "english"),
        ("lamp", ["El Niño and La Niña are phases of the same climate pattern."], "english"),
    ],
)
def test_common_words_of_the_candidates_decide(query: str, texts: list[str], expected: str) -> None:
    assert language_of(query, texts) == expected


@pytest.mark.parametrize(
    ("text", "is_latin", "script"),
    [
        ("Who keeps the lamp in 1931?", True, ""),
        ("Wer hütet das Größte? Łódź ça ñ", True, ""),
        ("The lamp of Хлеб", True, None),
        ("1931?", True, ""),
        ("", True, ""),
        ("lamp: Хлеб подорожал.", False, "Cyrillic"),
        ("Что такое Kubernetes 2.0?", False, "Cyrillic"),
        ("من يحرس المصباح؟", False, "Arabic"),
        ("谁看守灯? 灯在黄昏点亮。", False, "Chinese characters"),
        ("什么是 transformer?", False, "Chinese characters"),
        ("水車は今も回る。", False, "Japanese"),
        ("누가 등불을 지키나?", False, "Hangul"),
        ("दीपक कौन रखता है?", False, "Devanagari"),
        ("ใครดูแลตะเกียง", False, "Thai"),
    ],
)
def test_the_script_of_most_words_decides(text: str, is_latin: bool, script: str | None) -> None:
    assert mostly_latin(text) is is_latin
    assert script is None or script_of(text) == script
