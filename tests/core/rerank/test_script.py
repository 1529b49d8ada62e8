import pytest

from precise_rag.rerank.language import mostly_latin, script_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Who keeps the lamp?", True),
        ("Wer hütet das Größte? Łódź ça ñ", True),
        ("من يحرس المصباح؟", False),
        ("谁看守灯? 灯在黄昏点亮。", False),
        ("lamp: Хлеб подорожал.", False),
        ("The lamp of Хлеб", True),
        ("什么是 transformer?", False),
        ("Что такое Kubernetes 2.0?", False),
        ("1931?", True),
        ("", True),
    ],
)
def test_the_script_of_most_words_decides(text: str, expected: bool) -> None:
    assert mostly_latin(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Что такое Kubernetes 2.0?", "Cyrillic"),
        ("من يحرس المصباح؟", "Arabic"),
        ("谁看守灯?", "Chinese characters"),
        ("水車は今も回る。", "Japanese"),
        ("누가 등불을 지키나?", "Hangul"),
        ("दीपक कौन रखता है?", "Devanagari"),
        ("ใครดูแลตะเกียง", "Thai"),
        ("Who keeps the lamp in 1931?", ""),
        ("", ""),
    ],
)
def test_a_script_has_a_name(text: str, expected: str) -> None:
    assert script_of(text) == expected
