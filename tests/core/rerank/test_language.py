import pytest

from precise_rag.rerank.language import language_of

ENGLISH = ["The lamp is lit at dusk.", "Who has kept the lamp of the harbour?"]
GERMAN = ["Die Lampe wird in der Nacht angezündet.", "Wer hütet das Licht und die Lampe?"]
CODE = ["lamp.light(at=dusk)", "| lamp | 12 |"]


@pytest.mark.parametrize(
    ("query", "texts", "expected"),
    [
        ("Who keeps the lamp?", ENGLISH, "english"),
        ("Wer hütet die Lampe?", GERMAN, "latin"),
        ("¿Quién guarda la lámpara?", ["La lámpara se enciende por la noche.", "El pan es caro."], "latin"),
        ("من يحرس المصباح؟", ENGLISH, "spaced"),
        ("Что такое Kubernetes 2.0?", ENGLISH, "spaced"),
        ("누가 등불을 지키나?", ENGLISH, "spaced"),
        ("谁看守灯?", ENGLISH, "unspaced"),
        ("什么是 transformer?", ENGLISH, "unspaced"),
        ("ใครดูแลตะเกียง", ENGLISH, "unspaced"),
        ("lamp", CODE, "english"),
        ("lamp", [], "english"),
        ("lamp", ["El Niño and La Niña are phases of the same climate pattern."], "english"),
    ],
)
def test_common_words_of_the_candidates_decide(query: str, texts: list[str], expected: str) -> None:
    assert language_of(query, texts) == expected


def test_a_few_texts_do_not_decide() -> None:
    long = " ".join(GERMAN * 50)
    assert language_of("Who keeps the lamp?", [long] * 5 + ENGLISH * 4) == "english"
