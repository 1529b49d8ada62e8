"""A cache of vectors on disk."""

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray, IntArray

_SLICE = 2048
"""Texts that are encoded and then stored together; an interrupted run loses at most these."""
_KEYS_PER_QUERY = 500


class CachedEncoder:
    """An encoder that stores its vectors in a SQLite file and encodes each text only once.

    encoder: the encoder to use for texts that are not in the file.
    path: the file; created if missing. Several encoders, threads and processes can share it.
    """

    def __init__(self, encoder: Encoder, path: str | Path) -> None:
        self._encoder = encoder
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._connect() as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    @property
    def name(self) -> str:
        """The wrapped encoder's name, because the vectors are the same."""
        return self._encoder.name

    @property
    def source(self) -> str:
        """The name or folder for `load_encoder` that loads the wrapped encoder again."""
        return str(getattr(self._encoder, "source", self.name))

    @property
    def tokenizer(self) -> object:
        """The wrapped encoder's tokenizer, or None."""
        return getattr(self._encoder, "tokenizer", None)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._encoder.dimension

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Encode n texts. Returns (n, d) float32 rows of unit length, in order."""
        return self._vectors("document", texts, partial(self._encoder.encode, show_progress=show_progress))

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode n queries; they are stored apart from documents, which a model may treat differently."""
        return self._vectors("query", queries, self._encoder.encode_queries)

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Count tokens with the wrapped encoder."""
        return self._encoder.count_tokens(texts)

    def _vectors(
        self, kind: str, texts: Sequence[str], encode: Callable[[Sequence[str]], FloatArray]
    ) -> FloatArray:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        keys = [self._key(kind, text) for text in texts]
        found = self._lookup(set(keys))
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in found}.items())
        for first in range(0, len(missing), _SLICE):
            part = dict(missing[first : first + _SLICE])
            vectors = encode(list(part.values()))
            self._store(list(part), vectors)
            found.update(zip(part, vectors, strict=True))
        return np.stack([found[key] for key in keys])

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=60.0)

    def _key(self, kind: str, text: str) -> bytes:
        content = "\0".join((self.name, kind, text)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16).digest()

    def _lookup(self, keys: set[bytes]) -> dict[bytes, FloatArray]:
        found: dict[bytes, FloatArray] = {}
        ordered = sorted(keys)
        with self._connect() as db:
            for first in range(0, len(ordered), _KEYS_PER_QUERY):
                part = ordered[first : first + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(part))
                rows = db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part)
                found.update((key, np.frombuffer(vector, dtype=np.float32)) for key, vector in rows)
        return found

    def _store(self, keys: Sequence[bytes], vectors: FloatArray) -> None:
        rows = [(key, vector.astype(np.float32).tobytes()) for key, vector in zip(keys, vectors, strict=True)]
        with self._connect() as db:
            db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
