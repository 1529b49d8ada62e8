import pytest

from precise_rag.rerank.language import language_of, mostly_latin, script_of

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
