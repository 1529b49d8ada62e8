"""Positions of spans on the line of visible characters and tokens."""

import pytest

from precise_rag.errors import InputError, ModelError
from precise_rag.evaluation import Evidence, Positions
from precise_rag.types import Document


def test_offsets_count_code_points_beyond_the_basic_plane() -> None:
    positions = Positions([Document("d", "😀 😀😀 a")], tokenizer="words")
    assert positions.locate([Evidence("d", 2, 4)]).tolist() == [[1, 3]]
    assert positions.count_tokens([Evidence("d", 0, 6), Evidence("d", 5, 6)]).tolist() == [4, 1]


def test_white_space_has_no_width() -> None:
    positions = Positions([Document("d", "aa  bb"), Document("e", "c")], tokenizer="words")
    assert positions.locate([Evidence("d", 0, 3), Evidence("d", 3, 6), Evidence("e", 0, 1)]).tolist() == [
        [0, 2],
        [2, 4],
        [4, 5],
    ]


def test_unknown_documents_offsets_and_tokenizers_are_refused() -> None:
    positions = Positions([Document("d", "aa bb")], tokenizer="words")
    with pytest.raises(InputError, match="not in the collection"):
        positions.locate([Evidence("z", 0, 1)])
    with pytest.raises(InputError, match="do not fit"):
        positions.locate([Evidence("d", 0, 99)])
    with pytest.raises(ModelError, match="no such tokenizer file"):
        Positions([], tokenizer="nowhere.json")
