"""A cache of vectors on disk, so that commands encode each text only once."""

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from precise_rag.encoded import encode_documents, encode_queries
from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray

_SLICE = 2048
"""Texts that are encoded and stored together; an interrupted run loses at most these."""


class CachedEncoder:
    """An encoder that keeps its vectors in a SQLite file; of queries apart from those of documents.

    encoder: for texts that are not in the file. file: created if missing.
    """

    def __init__(self, encoder: Encoder, file: Path) -> None:
        self._encoder, self._file = encoder, file
        self.name, self.source = encoder.name, getattr(encoder, "source", encoder.name)
        self.dimension, self.count_tokens = encoder.dimension, encoder.count_tokens
        file.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(file)) as db:
            db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, row BLOB) WITHOUT ROWID")

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        encode = partial(encode_documents, self._encoder, show_progress=show_progress)
        return self._vectors("document", texts, encode)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        return self._vectors("question", queries, partial(encode_queries, self._encoder))

    def _vectors(
        self, kind: str, texts: Sequence[str], encode: Callable[[Sequence[str]], FloatArray]
    ) -> FloatArray:
        keys = [self._key(kind, text) for text in texts]
        find, store = "SELECT row FROM vectors WHERE key = ?", "INSERT OR REPLACE INTO vectors VALUES (?, ?)"
        with closing(sqlite3.connect(self._file, timeout=60)) as db:
            every = dict(zip(keys, texts, strict=True))
            missing = [key for key in every if db.execute(find, [key]).fetchone() is None]
            for first in range(0, len(missing), _SLICE):
                part = missing[first : first + _SLICE]
                vectors = encode([every[key] for key in part]).astype("<f4")
                with db:
                    db.executemany(store, [(k, v.tobytes()) for k, v in zip(part, vectors, strict=True)])
            rows = [np.frombuffer(db.execute(find, [key]).fetchone()[0], dtype="<f4") for key in keys]
        return np.array(rows, dtype=np.float32).reshape(-1, self.dimension)

    def _key(self, kind: str, text: str) -> bytes:
        content = "\0".join((self.name, kind, text)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16).digest()
