"""Token ids of texts, in arrays."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from precise_rag.types import IntArray
from precise_rag.vectors import slice_places


class TokenIds(NamedTuple):
    """The tokens of n texts.

    ids: (t,) the token ids of all texts, one text after the other.
    offsets: (n + 1,) text i has the ids[offsets[i]:offsets[i + 1]].
    """

    ids: IntArray
    offsets: IntArray

    @property
    def lengths(self) -> IntArray:
        """(n,) number of tokens of each text."""
        return np.diff(self.offsets)

    def of(self, texts: IntArray) -> "TokenIds":
        """Return the tokens of some of the texts, given by their places."""
        lengths = self.lengths[texts]
        return TokenIds(self.ids[slice_places(self.offsets[texts], lengths)], _offsets(lengths))

    def cut(self, limit: int) -> "TokenIds":
        """Return the tokens with at most `limit` of each text; the last, which ends a text, is kept."""
        if len(self.lengths) == 0 or int(self.lengths.max()) <= limit:
            return self
        lengths = np.minimum(self.lengths, limit)
        ids = self.ids[slice_places(self.offsets[:-1], lengths)]
        ids[np.cumsum(lengths) - 1] = self.ids[self.offsets[1:] - 1]
        return TokenIds(ids, _offsets(lengths))


def places(lengths: IntArray) -> IntArray:
    """Return the (t,) position of each token in its text. lengths: (n,) tokens of each text."""
    return slice_places(np.zeros_like(lengths), lengths)


def _offsets(lengths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)])


def read_tokenizer(file: Path) -> Any:
    """Return the `tokenizers.Tokenizer` of a file, without truncation; one file has one object.

    Raises what the library raises.
    """
    return _read_tokenizer(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read_tokenizer(file: Path, changed: int) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def read_ids(tokenizer: Any, texts: Sequence[str], at_once: int) -> TokenIds:
    """Tokenize texts, with special tokens.

    tokenizer: a `tokenizers.Tokenizer`.
    at_once: number of texts that are tokenized together; bounds the memory needed.
    """
    parts, lengths = [np.zeros(0, dtype=np.int64)], [0]
    for first in range(0, len(texts), at_once):
        rows = [encoding.ids for encoding in tokenizer.encode_batch_fast(texts[first : first + at_once])]
        lengths += map(len, rows)
        parts.append(np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=sum(map(len, rows))))
    return TokenIds(np.concatenate(parts), np.cumsum(lengths))
