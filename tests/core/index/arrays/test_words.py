import pytest

from precise_rag.index.arrays.words import Vocabulary, joined_words, split_words


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
    vocabulary = Vocabulary(frozenset())
    columns = vocabulary.columns(["b a", "", "b"])
    assert columns["words.values"].tolist() == [0, 1, 0]
    assert columns["words.lengths"].tolist() == [2, 0, 1]
    assert vocabulary.distinct("a new a b") == ["a", "new", "b"]
    assert vocabulary.numbers(["a", "new", "b"]).tolist() == [1, -1, 0]
    assert len(vocabulary) == 2
    assert vocabulary.words() == ["b", "a"]
    assert Vocabulary(frozenset(), vocabulary.words()).words() == ["b", "a"]


def test_stop_words_are_left_out() -> None:
    vocabulary = Vocabulary(frozenset({"the"}))
    assert vocabulary.columns(["The cat, the dog"])["words.values"].tolist() == [0, 1]
    assert vocabulary.words() == ["cat", "dog"]
    assert vocabulary.distinct("the dog") == ["dog"]


def test_joined_words_are_those_that_rows_hold() -> None:
    one, two = Vocabulary(frozenset()), Vocabulary(frozenset())
    first, second = one.columns(["gone", "b a"]), two.columns(["c b b"])
    first["words.values"] = first["words.values"][1:]
    joined, columns = joined_words([one, two], [first, second])
    assert joined.words() == ["b", "a", "c"]
    assert [column["words.values"].tolist() for column in columns] == [[0, 1], [2, 0, 0]]
