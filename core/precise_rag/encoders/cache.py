"""A cache of vectors on disk."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from precise_rag.checks import as_path
from precise_rag.encoded import encode_documents, encode_queries, encoded_rows
from precise_rag.errors import ModelError
from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray, IntArray

_SLICE = 2048
"""Texts that are looked up, encoded and stored together; an interrupted run loses at most these."""


class CachedEncoder:
    """An encoder that stores its vectors in a SQLite file and encodes each text only once.

    encoder: the encoder to use for texts that are not in the file.
    path: the file; created if missing. Several encoders, threads and processes can share it.
    Raises ModelError, here and when it encodes, if the file is damaged or cannot be read and written.
    """

    def __init__(self, encoder: Encoder, path: str | Path) -> None:
        self._encoder = encoder
        self._path = as_path("path", path)
        with self._opened() as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, row BLOB) WITHOUT ROWID")

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
        encode = partial(encode_documents, self._encoder, show_progress=show_progress)
        return self._vectors("document", texts, encode)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode n queries; they are stored apart from documents, which a model may treat differently."""
        return self._vectors("query", queries, partial(encode_queries, self._encoder))

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Count tokens with the wrapped encoder."""
        return self._encoder.count_tokens(texts)

    def _vectors(
        self, kind: str, texts: Sequence[str], encode: Callable[[Sequence[str]], FloatArray]
    ) -> FloatArray:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        keys = [self._key(kind, text) for text in texts]
        every, known = list(dict(zip(keys, texts, strict=True)).items()), dict[bytes, FloatArray]()
        for first in range(0, len(every), _SLICE):
            part = dict(every[first : first + _SLICE])
            known.update(self._lookup(list(part)))
            missing = {key: text for key, text in part.items() if key not in known}
            if missing:
                vectors = encode(list(missing.values()))
                self._store(list(missing), vectors)
                known.update(zip(missing, vectors, strict=True))
        return encoded_rows([known[key] for key in keys], len(keys), source=f"{self.name} with {self._path}")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction. Raises ModelError if SQLite cannot use the file."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self._path, timeout=60.0)
            try:
                with db:
                    yield db
            finally:
                db.close()
        except (sqlite3.Error, OSError, MemoryError) as error:
            raise ModelError(
                f"the cache of vectors {self._path} cannot be used ({error}); if it is damaged, delete it: "
                "its vectors are then encoded again"
            ) from error

    def _key(self, kind: str, text: str) -> bytes:
        content = "\0".join((self.name, kind, text)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16).digest()

    def _lookup(self, keys: Sequence[bytes]) -> dict[bytes, FloatArray]:
        marks = ",".join("?" * len(keys))
        with self._opened() as db:
            rows = db.execute(f"SELECT key, row FROM vectors WHERE key IN ({marks})", keys)
            return {key: np.frombuffer(row, dtype="<f4") for key, row in rows}

    def _store(self, keys: Sequence[bytes], vectors: FloatArray) -> None:
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in zip(keys, vectors, strict=True)]
        with self._opened() as db:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
