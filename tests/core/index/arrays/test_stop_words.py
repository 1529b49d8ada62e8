import pytest

from precise_rag.errors import InputError
from precise_rag.index.arrays.stop_words import load_stop_words


def test_stop_words_come_from_a_named_list_or_are_given() -> None:
    assert {"the", "what", "is"} <= load_stop_words("english")
    assert not {"cat", "bank"} & load_stop_words("english")
    assert load_stop_words("none") == frozenset()
    assert load_stop_words(("Der", "die")) == {"der", "die"}
    with pytest.raises(InputError, match=r"stop_words must be 'english'.*got 'klingon'"):
        load_stop_words("klingon")
