"""A cache of vectors whose file is damaged, full, foreign or in use: right vectors or one error."""

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from precise_rag.encoders import CachedEncoder
from precise_rag.errors import InputError, ModelError
from precise_rag.testing import HashEncoder

TEXTS = [f"Text {i} is about {['lamps', 'and', 'boats'][i % 3]} number {i * i}." for i in range(60)]
RIGHT = HashEncoder(32).encode(TEXTS)
FILL = """
import sys
from precise_rag.encoders import CachedEncoder
from precise_rag.testing import HashEncoder

texts = [f"Text {i} of all." for i in range(int(sys.argv[2]))]
for first in range(0, len(texts), 7):
    CachedEncoder(HashEncoder(32), sys.argv[1]).encode(texts[first : first + 7])
"""


def cache(file: Path) -> bytes:
    """Fill a cache. Returns its file, with all that SQLite keeps beside it while it writes."""
    CachedEncoder(HashEncoder(32), file).encode(TEXTS)
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return file.read_bytes()


def read(file: Path) -> bool:
    """Whether a cache can be used; its vectors are then the right ones, now and when they are read again."""
    try:
        for _ in range(2):
            rows = CachedEncoder(HashEncoder(32), file).encode(TEXTS)
            np.testing.assert_allclose(rows, RIGHT, atol=1e-6)
    except ModelError:
        return False
    return True


def write(file: Path, content: bytes) -> None:
    for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
        file.with_name(name).unlink(missing_ok=True)
    file.write_bytes(content)


def test_a_damaged_cache_gives_the_right_vectors_or_one_error(tmp_path: Path) -> None:
    whole, file = cache(tmp_path / "vectors"), tmp_path / "vectors"
    choose, usable = random.Random(20), 0
    for attempt in range(60):
        damaged = bytearray(whole)
        if attempt % 4 == 0:
            del damaged[choose.randrange(len(damaged)) :]
        elif attempt % 4 == 1:
            first = choose.randrange(len(damaged))
            damaged[first : first + 300] = choose.randbytes(min(300, len(damaged) - first))
        else:
            for _ in range(choose.choice((1, 1, 8, 64))):
                damaged[choose.randrange(len(damaged))] ^= 1 << choose.randrange(8)
        write(file, bytes(damaged))
        usable += read(file)
    assert 0 < usable < 60


def test_a_vector_that_was_changed_is_encoded_again(tmp_path: Path) -> None:
    file = tmp_path / "vectors"
    cache(file)
    with sqlite3.connect(file) as db:
        keys = [key for (key,) in db.execute("SELECT key FROM checked_vectors")]
        rows = dict(db.execute("SELECT key, row FROM checked_vectors"))
        changes = [rows[keys[0]][:-1], rows[keys[1]] + b"1234", rows[keys[2]], "text", 7, None, b"", 1.5]
        db.executemany(
            "UPDATE checked_vectors SET row = ? WHERE key = ?", zip(changes, keys[3:], strict=False)
        )
    db.close()
    inner = HashEncoder(32)
    np.testing.assert_allclose(CachedEncoder(inner, file).encode(TEXTS), RIGHT, atol=1e-6)
    assert len(inner.calls) == len(changes)
    again = HashEncoder(32)
    np.testing.assert_allclose(CachedEncoder(again, file).encode(TEXTS), RIGHT, atol=1e-6)
    assert not again.calls


def test_what_is_no_cache_is_one_error_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    text = tmp_path / "notes.md"
    text.write_text("Nothing that SQLite knows. " * 100)
    for place in (tmp_path / "folder", text, text / "vectors"):
        with pytest.raises(ModelError, match=rf"the cache of vectors {place} cannot be used"):
            CachedEncoder(HashEncoder(32), place)
    with pytest.raises(InputError, match="path cannot be a path: it has a null character"):
        CachedEncoder(HashEncoder(32), "a\0b")
    assert text.read_text().startswith("Nothing")


def test_vectors_of_another_length_under_the_same_name_are_one_error(tmp_path: Path) -> None:
    class SameName(HashEncoder):
        name = "hash-32"

    cache(tmp_path / "vectors")
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
