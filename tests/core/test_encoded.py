from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from precise_rag.encoded import count_tokens, encode_documents, encode_queries, encoded_rows
from precise_rag.errors import ModelError
from precise_rag.index import HybridIndex
from precise_rag.segmentation import GreedySegmenter
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from precise_rag.vectors import dots, linear, unit_rows
from support.documents import read_cases


def test_rows_are_scaled_to_unit_length_however_long_they_are() -> None:
    rows = encoded_rows([[3, 4], [0, 0], [3e30, 4e30], [-3e-30, 0]], 4, source="a model")
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [0.6, 0.8], [-1, 0]], rtol=1e-5)
    given = np.array([[3, 4], [0, 0], [0, 1e-6]], dtype=np.float32)
    np.testing.assert_allclose(unit_rows(given), [[0.6, 0.8], [0, 0], [0, 1]], rtol=1e-6)
    assert given[0].tolist() == [3, 4], "what is given stays"
    short = unit_rows(np.array([[3, 4], [0, 1e-4]], dtype=np.float32), shortest=1e-3)
    np.testing.assert_allclose(short, [[0.6, 0.8], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        *read_cases("encoders.json", "no vectors of texts"),
        ([[1j], [2j]], "expected real numbers"),
        ([[float("nan")], [1.0]], "a model returned vectors with NaN or infinity"),
        ([[1e300], [1.0]], "a model returned vectors with NaN or infinity"),
        ([[10**400], [1.0]], "no array of vectors"),
    ],
)
def test_what_is_not_one_vector_for_each_text_is_refused(vectors: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        encoded_rows(vectors, 2, source="a model")


class Lists(HashEncoder):
    """An encoder that returns lists."""

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> Any:
        return HashEncoder(self.dimension).encode(texts).tolist()

    def encode_queries(self, queries: Sequence[str]) -> Any:
        return HashEncoder(self.dimension).encode(queries).tolist()

    def count_tokens(self, texts: Sequence[str]) -> Any:
        return super().count_tokens(texts).tolist()


def test_lists_are_converted_and_no_text_asks_nothing() -> None:
    texts = ["one two", "three"]
    rows = HashEncoder(8).encode(texts)
    np.testing.assert_allclose(encode_documents(Lists(8), texts), rows, atol=1e-6)
    np.testing.assert_allclose(encode_queries(Lists(8), texts), rows, atol=1e-6)
    assert count_tokens(Lists(8), texts).tolist() == [2, 1]
    encoder = HashEncoder(8)
    assert encode_documents(encoder, []).shape == encode_queries(encoder, []).shape == (0, 8)
    assert count_tokens(encoder, []).shape == (0,)
    assert not encoder.calls


def test_of_a_long_question_the_ends_are_read() -> None:
    encoder = Mock(wraps=HashEncoder(8), dimension=8)
    question = f"Who keeps the lamp?{' word' * 100_000} What does it cost?"
    encode_queries(encoder, [question])
    ((read,),) = encoder.encode_queries.call_args.args
    assert len(read) < 10_000
    assert (read[:8], read[-8:]) == (question[:8], question[-8:])


@pytest.mark.parametrize("counts", [None, [1], [1, 2, 3], [1, -1], [1.5, 2.0], ["a", "b"], [[1], [2]], 3])
def test_token_counts_that_are_not_a_whole_number_for_each_text_are_refused(counts: object) -> None:
    encoder = HashEncoder(8)
    encoder.count_tokens = lambda texts: counts  # type: ignore[method-assign, assignment, return-value]
    document = Document("d", "One. Two.")
    for use in (
        lambda: count_tokens(encoder, ["one", "two"]),
        lambda: HybridIndex.build([document], encoder),
        lambda: GreedySegmenter(encoder).segment(document),
    ):
        with pytest.raises(ModelError, match=r"hash-8 returned .*token counts"):
            use()


def test_products_of_any_size_are_those_of_numpy() -> None:
    random = np.random.default_rng(0)
    for n, d, k in ((0, 3, 2), (1, 1, 1), (700, 384, 64)):
        rows = random.standard_normal((n, d)).astype(np.float32)
        weight = random.standard_normal((k, d)).astype(np.float32)
        np.testing.assert_allclose(linear(rows, weight), rows @ weight.T, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(dots(rows, weight[0]), rows @ weight[0], rtol=1e-4, atol=1e-4)
    part = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, :3]
    np.testing.assert_allclose(dots(part, np.ones(3, dtype=np.float32)), [3, 39])
