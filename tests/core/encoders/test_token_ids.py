import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from precise_rag.encoders.token_ids import read_ids


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_ids_of_all_texts_are_in_one_array(at_once: int) -> None:
    tokenizer = Tokenizer(models.WordLevel({"?": 0, "one": 1, "two": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens = read_ids(tokenizer, ["one two one", "", "two x"], at_once)
    assert tokens.ids.tolist() == [1, 2, 1, 2, 0]
    assert tokens.offsets.tolist() == [0, 3, 3, 5]
    assert tokens.lengths.tolist() == [3, 0, 2]
