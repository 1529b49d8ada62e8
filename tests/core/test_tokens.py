import pytest

from precise_rag.tokens import estimate_prompt_tokens, estimate_token_counts, estimate_tokens
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


def test_several_texts_are_counted() -> None:
    assert estimate_token_counts(["", "Cat naps.", "retrieval"]).tolist() == [0, 3, 2]
    assert estimate_token_counts([]).shape == (0,)


def test_each_message_of_a_prompt_has_an_overhead() -> None:
    assert estimate_prompt_tokens((Message("user", "a" * 40),)) == 11
    one = estimate_prompt_tokens([Message("user", "Cat naps.")])
    assert one > 3
    assert estimate_prompt_tokens([Message("user", "Cat naps.")] * 2) == 2 * one
