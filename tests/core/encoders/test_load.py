import pytest

from precise_rag.encoders import load_encoder
from precise_rag.errors import InputError
from precise_rag.testing import HashEncoder


def test_an_encoder_is_returned_unchanged() -> None:
    encoder = HashEncoder()
    assert load_encoder(encoder) is encoder


def test_openai_models_are_named_with_their_dimensions() -> None:
    assert load_encoder("openai:small").name == "openai:small"
    assert load_encoder("openai:small/256").name == "openai:small/256"
    with pytest.raises(InputError, match="must be the number of dimensions"):
        load_encoder("openai:small/x")


def test_other_objects_are_refused() -> None:
    with pytest.raises(InputError, match=r"encoder must be the name of a model, .*, got int"):
        load_encoder(3)
