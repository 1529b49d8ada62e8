from pathlib import Path

import numpy as np

from precise_rag.encoders import CachedEncoder
from precise_rag.testing import HashEncoder


def test_each_text_is_encoded_once(tmp_path: Path) -> None:
    inner = HashEncoder()
    rows = CachedEncoder(inner, tmp_path / "vectors.sqlite").encode(["a b", "c", "a b"])
    np.testing.assert_allclose(rows, HashEncoder().encode(["a b", "c", "a b"]), rtol=1e-6)
    again = CachedEncoder(inner, tmp_path / "vectors.sqlite").encode(["c", "d"])
    np.testing.assert_allclose(again, HashEncoder().encode(["c", "d"]), rtol=1e-6)
    assert inner.calls == ["a b", "c", "d"]


def test_queries_are_stored_apart_from_documents(tmp_path: Path) -> None:
    class ShiftedQueries(HashEncoder):
        n_queries = 0

        def encode_queries(self, queries):  # type: ignore[no-untyped-def]
            self.n_queries += len(queries)
            return np.roll(super().encode_queries(queries), 1, axis=1)

        def encode(self, texts, *, show_progress=False):  # type: ignore[no-untyped-def]
            return HashEncoder().encode(texts)

    inner = ShiftedQueries()
    cached = CachedEncoder(inner, tmp_path / "vectors.sqlite")
    document = cached.encode(["a b"])
    for _ in range(2):
        np.testing.assert_allclose(cached.encode_queries(["a b"]), np.roll(document, 1, axis=1), rtol=1e-6)
    assert inner.n_queries == 1


def test_a_cached_encoder_has_the_name_and_size_of_the_encoder(tmp_path: Path) -> None:
    cached = CachedEncoder(HashEncoder(64), tmp_path / "folder" / "vectors.sqlite")
    assert (cached.name, cached.dimension) == ("hash-64", 64)
    assert cached.encode([]).shape == (0, 64)
    assert cached.count_tokens(["one two"]).tolist() == [2]
