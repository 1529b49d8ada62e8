import pytest

from precise_rag.tokens import (
    estimate_in_english,
    estimate_prompt_tokens,
    estimate_token_counts,
    estimate_tokens,
)
from precise_rag.types import Message


@pytest.mark.parametrize(
    ("text", "n_tokens"),
    [
        ("", 0),
        ("Cat naps.", 3),
        ("retrieval", 2),
        ("a" * 400, 67),  # one for every six letters
        ("Eels, it's 1990.", 7),
        ("北京大学", 4),
        ("巴黎在法国", 5),
        ("река", 2),  # one for every two letters of another alphabet
        ("привет", 3),
    ],
)
def test_words_letters_and_marks_are_counted(text: str, n_tokens: int) -> None:
    assert estimate_tokens(text) == n_tokens


@pytest.mark.parametrize(
    ("text", "n_tokens"),
    [
        ("The bridge was opened in spring.", 7),
        ("Мост открыли весной ещё раз.", 7),
        ("पुल वसंत में फिर से खोला गया", 7),  # vowel signs belong to their letters
        ("다리는 봄에 다시 열렸다", 6),  # one for every two syllables
        ("橋は春に再び開かれた", 9),  # each ideograph, every two kana in a row
        ("فُتِحَ الجسرُ", 2),
        ("", 0),
    ],
)
def test_other_scripts_count_as_the_same_in_english(text: str, n_tokens: int) -> None:
    assert estimate_in_english(text) == n_tokens


def test_several_texts_and_messages_are_counted() -> None:
    assert estimate_token_counts(["", "Cat naps.", "retrieval"]).tolist() == [0, 3, 2]
    assert estimate_token_counts([]).shape == (0,)
    assert estimate_prompt_tokens((Message("user", "a" * 40),)) == 11
    one = estimate_prompt_tokens([Message("user", "Cat naps.")])
    assert one > 3
    assert estimate_prompt_tokens([Message("user", "Cat naps.")] * 2) == 2 * one
