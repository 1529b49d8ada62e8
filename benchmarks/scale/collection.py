"""A large collection: real text repeated with changes, and the vectors of real sentences likewise.

20,000 sentences of the development sets are encoded once. Each copy of a document has about one word in ten
changed for another one of the document, and the vectors of its sentences are turned by a random angle of
about 27 degrees.
"""

import random
import re
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks.questions import real_documents
from precise_rag.protocols import Encoder
from precise_rag.sentences import split_sentences
from precise_rag.types import Document, FloatArray, IntArray
from precise_rag.vectors import unit_rows

REAL = 20_000
_TANGENT = 0.5
"""That of the angles."""
_WORD = re.compile(r"(?<= )[a-z]{4,}(?= )")


class LargeCollection:
    """Documents, and the encoder that knows the vectors of their sentences.

    data: folder of the question sets. encoder: encodes the real sentences, and whatever else is asked.
    """

    name = "varied"

    def __init__(self, data: Path, encoder: Encoder) -> None:
        self._encoder, self._known = encoder, dict[str, FloatArray]()
        self.dimension = encoder.dimension
        self._real: list[tuple[Document, list[str], FloatArray]] = []
        n_sentences = 0
        for document in real_documents(data):
            texts = [document.text[a:b] for a, b in split_sentences(document.text)]
            self._real.append((document, texts, encoder.encode(texts)))
            n_sentences += len(texts)
            if n_sentences >= REAL:
                break

    def batches(self, n_sentences: int) -> Iterator[list[Document]]:
        """Documents of about this many sentences, some at a time; only those of the last batch are known."""
        left = n_sentences
        for copy in count():
            for first in range(0, len(self._real), 64):
                self._known.clear()
                batch = [
                    self._varied(place, copy) for place in range(first, min(first + 64, len(self._real)))
                ]
                left -= len(self._known)
                yield batch
                if left <= 0:
                    return

    def _varied(self, place: int, copy: int) -> Document:
        document, texts, vectors = self._real[place]
        drawn, rng = random.Random(f"{copy} {place}"), np.random.default_rng((copy, place))
        words = _WORD.findall(document.text) or ["nothing"]
        pieces, end = [], 0
        for (start, stop), text, vector in zip(split_sentences(document.text), texts, vectors, strict=True):
            if copy:
                text = _WORD.sub(lambda m: drawn.choice(words) if drawn.random() < 0.2 else m[0], text)
                vector = turned(vector[None], rng)[0]
            self._known[text.strip()] = vector
            pieces += [document.text[end:start], text]
            end = stop
        pieces.append(document.text[end:])
        return Document(f"{copy}-{document.id}", "".join(pieces), {**document.metadata, "copy": copy})

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Vectors of the last batch's sentences, and of other texts as the encoder gives them."""
        unknown = [text for text in texts if text.strip() not in self._known]
        rest = iter(self._encoder.encode(unknown))
        rows = [self._known[t.strip()] if t.strip() in self._known else next(rest) for t in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dimension)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """See `Encoder`."""
        return self._encoder.encode_queries(queries)

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """See `Encoder`; nearly, and without a tokenizer."""
        return np.array([len(text) // 4 for text in texts], dtype=np.int64)


def turned(vectors: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(n, d) vectors turned by a random angle each; their lengths stay."""
    noise = rng.standard_normal(size=vectors.shape, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    noise *= _TANGENT * lengths / np.linalg.norm(noise, axis=1, keepdims=True)
    return unit_rows(vectors + noise) * lengths
