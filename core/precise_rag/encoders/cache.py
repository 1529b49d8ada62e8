"""Vectors kept on disk by content, so that a text is encoded once per encoder, ever."""

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray, IntArray

_SLICE = 2048
"""Texts encoded between two commits: what an interrupted run loses at most."""


class CachedEncoder:
    """An encoder that looks each text up in a SQLite file before encoding it.

    One file serves many encoders (rows are keyed by the encoder's name and a hash of the text),
    several threads and several processes.
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
        """The wrapped encoder's name: the vectors are the same."""
        return self._encoder.name

    @property
    def source(self) -> str:
        """What loads the wrapped encoder again."""
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
        """(n, d) float32 rows of unit length; only texts never seen before are encoded."""
        keys = [self._key("document", text) for text in texts]
        found = self._lookup(set(keys))
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in found}.items())
        for first in range(0, len(missing), _SLICE):
            part = missing[first : first + _SLICE]
            vectors = self._encoder.encode([text for _, text in part], show_progress=show_progress)
            self._store([key for key, _ in part], vectors)
            found.update(zip((key for key, _ in part), vectors, strict=True))
        if not keys:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack([found[key] for key in keys])

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Queries, cached apart from documents: a model may treat them differently."""
        keys = [self._key("query", query) for query in queries]
        found = self._lookup(set(keys))
        missing = list({k: q for k, q in zip(keys, queries, strict=True) if k not in found}.items())
        if missing:
            vectors = self._encoder.encode_queries([query for _, query in missing])
            self._store([key for key, _ in missing], vectors)
            found.update(zip((key for key, _ in missing), vectors, strict=True))
        if not keys:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack([found[key] for key in keys])

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Token counts of the wrapped encoder."""
        return self._encoder.count_tokens(texts)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=60.0)

    def _key(self, kind: str, text: str) -> bytes:
        content = "\0".join((self.name, kind, text)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16).digest()

    def _lookup(self, keys: set[bytes]) -> dict[bytes, FloatArray]:
        found: dict[bytes, FloatArray] = {}
        ordered = sorted(keys)
        with self._connect() as db:
            for first in range(0, len(ordered), 500):
                part = ordered[first : first + 500]
                marks = ",".join("?" * len(part))
                rows = db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part)
                found.update((key, np.frombuffer(vector, dtype=np.float32)) for key, vector in rows)
        return found

    def _store(self, keys: Sequence[bytes], vectors: FloatArray) -> None:
        rows = [(key, vector.astype(np.float32).tobytes()) for key, vector in zip(keys, vectors, strict=True)]
        with self._connect() as db:
            db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
