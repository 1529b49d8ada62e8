import numpy as np
import pytest

from precise_rag.protocols import Encoder
from precise_rag.testing import HashEncoder


def test_a_hash_encoder_is_an_encoder() -> None:
    encoder = HashEncoder(64)
    assert isinstance(encoder, Encoder)
    assert (encoder.name, encoder.dimension) == ("hash-64", 64)
    assert encoder.encode([]).shape == (0, 64)
    assert encoder.count_tokens(["", "one, two"]).tolist() == [0, 2]
    documents = encoder.encode(["b", "a"])
    np.testing.assert_allclose(encoder.encode_queries(["b", "a"]), documents, rtol=1e-6)
    assert encoder.calls == ["b", "a"], "queries are not recorded"


def test_texts_are_compared_by_shared_words() -> None:
    cat, kitten, rates = HashEncoder().encode(["The cat sat.", "the CAT ran", "interest rates"])
    assert cat @ kitten == pytest.approx(2 / 3)
    assert cat @ rates == pytest.approx(0, abs=0.34)
    np.testing.assert_allclose(np.linalg.norm(HashEncoder().encode(["", "?!"]), axis=1), 1, rtol=1e-6)
