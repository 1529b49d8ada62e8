import pytest

from precise_rag.errors import InputError
from precise_rag.index import DenseIndex
from precise_rag.testing import HashEncoder


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(InputError, match="unexpected keyword argument 'alfa'"):
        DenseIndex.build([], HashEncoder(), alfa=1)


def test_an_index_of_vectors_needs_an_encoder() -> None:
    with pytest.raises(InputError, match="DenseIndex needs an encoder"):
        DenseIndex.build([])
