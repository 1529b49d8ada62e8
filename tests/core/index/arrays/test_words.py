import pytest

from precise_rag.index.arrays.words import Vocabulary, split_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S. uses C++, C# and Café's R.", "the u s uses c++ c# and cafe s r"),
        ("北京大学在北京", "北京 京大 大学 学在 在北 北京"),
        ("Straße ＡＢＣ １２", "strasse abc 12"),
        ("हिन्दी भाषा।", "हिन्दी भाषा"),
        ("मैं", "मैं"),
        ("서울 대학교", "서울 대학교"),
        ("snake_case 3.14", "snake case 3 14"),
        ("!? …", ""),
    ],
)
def test_a_text_is_split_into_words(text: str, expected: str) -> None:
    assert split_words(text) == expected.split()


def test_words_are_numbered_in_the_order_in_which_they_are_seen() -> None:
    vocabulary = Vocabulary("none")
    columns = vocabulary.columns(["b a", "", "b"])
    assert columns["words.values"].tolist() == [0, 1, 0]
    assert columns["words.lengths"].tolist() == [2, 0, 1]
    assert vocabulary.terms("a new a b").tolist() == [0, 1]
    assert len(vocabulary) == 2
    assert vocabulary.words() == ["b", "a"]
    assert Vocabulary("none", vocabulary.words()).words() == ["b", "a"]


def test_stop_words_are_left_out() -> None:
    vocabulary = Vocabulary(("the",))
    assert vocabulary.columns(["The cat, the dog"])["words.values"].tolist() == [0, 1]
    assert vocabulary.words() == ["cat", "dog"]
    assert vocabulary.terms("the dog").tolist() == [1]
