"""A cache of vectors whose file is damaged, full, foreign or in use: right vectors or one error."""

import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from precise_rag.encoders import CachedEncoder
from precise_rag.errors import InputError, ModelError
from precise_rag.testing import HashEncoder
from precise_rag.types import FloatArray

TEXTS = [f"Text {i} is about {['lamps', 'and', 'boats'][i % 3]} number {i * i}." for i in range(60)]
FILL = """
import sys
from precise_rag.encoders import CachedEncoder
from precise_rag.testing import HashEncoder

texts = [f"Text {i} of all." for i in range(int(sys.argv[2]))]
for first in range(0, len(texts), 7):
    CachedEncoder(HashEncoder(32), sys.argv[1]).encode(texts[first : first + 7])
"""


def test_each_text_is_encoded_once_for_all_that_share_the_file(tmp_path: Path) -> None:
    inner, file = HashEncoder(), tmp_path / "folder" / "vectors.sqlite"
    cached = CachedEncoder(inner, file)
    np.testing.assert_allclose(
        cached.encode(["a b", "c", "a b"]), HashEncoder().encode(["a b", "c", "a b"]), rtol=1e-6
    )
    for other in (CachedEncoder(inner, file), pickle.loads(pickle.dumps(cached))):
        np.testing.assert_allclose(other.encode(["c", "d"]), HashEncoder().encode(["c", "d"]), rtol=1e-6)
    assert inner.calls == ["a b", "c", "d"]
    assert (cached.name, cached.dimension, cached.encode([]).shape) == (inner.name, 256, (0, 256))
    assert cached.count_tokens(["one two"]).tolist() == [2]


def test_queries_are_stored_apart_from_documents(tmp_path: Path) -> None:
    class ShiftedQueries(HashEncoder):
        n_queries = 0

        def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
            return HashEncoder().encode(texts)

        def encode_queries(self, queries: Sequence[str]) -> FloatArray:
            self.n_queries += len(queries)
            return np.roll(self.encode(queries), 1, axis=1)

    inner = ShiftedQueries()
    cached = CachedEncoder(inner, tmp_path / "vectors.sqlite")
    document = cached.encode(["a b"])
    for _ in range(2):
        np.testing.assert_allclose(cached.encode_queries(["a b"]), np.roll(document, 1, axis=1), rtol=1e-6)
    assert inner.n_queries == 1


def test_what_is_no_cache_or_was_cut_off_is_one_error_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    text, file = tmp_path / "notes.md", tmp_path / "vectors"
    text.write_text("Nothing that SQLite knows. " * 100)
    for place in (tmp_path / "folder", text, text / "vectors"):
        with pytest.raises(ModelError, match=rf"the cache of vectors {place} cannot be used"):
            CachedEncoder(HashEncoder(32), place)
    assert text.read_text().startswith("Nothing")
    CachedEncoder(HashEncoder(32), file).encode(TEXTS)
    file.write_bytes(file.read_bytes()[:5_000])
    with pytest.raises(ModelError, match=r"cannot be used .*; if it is damaged, delete it"):
        CachedEncoder(HashEncoder(32), file).encode(TEXTS)
    with pytest.raises(InputError, match="path cannot be a path: it has a null character"):
        CachedEncoder(HashEncoder(32), "a\0b")


def test_vectors_of_another_length_under_the_same_name_are_one_error(tmp_path: Path) -> None:
    class SameName(HashEncoder):
        name = "hash-32"

    CachedEncoder(HashEncoder(32), tmp_path / "vectors").encode(TEXTS)
    with pytest.raises(ModelError, match="no array of vectors"):
        CachedEncoder(SameName(16), tmp_path / "vectors").encode([*TEXTS, "One that is new."])


def test_processes_fill_one_cache_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILL, str(tmp_path / "vectors"), "70"]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors
    inner, texts = HashEncoder(32), [f"Text {i} of all." for i in range(70)]
    found = CachedEncoder(inner, tmp_path / "vectors").encode(texts)
    np.testing.assert_allclose(found, HashEncoder(32).encode(texts), atol=1e-6)
    assert not inner.calls
