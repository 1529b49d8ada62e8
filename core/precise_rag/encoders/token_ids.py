"""Token ids of texts, in arrays."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from precise_rag.types import BoolArray, IntArray
from precise_rag.vectors import offsets_of, slice_places


class TokenIds(NamedTuple):
    """The tokens of n texts, or of n pairs of texts.

    ids: (t,) the token ids of all texts, one text after the other.
    offsets: (n + 1,) text i has the ids[offsets[i]:offsets[i + 1]].
    kinds: (t,) the type of each token, such as 1 in the second text of a pair; None: all are of type 0.
    """

    ids: IntArray
    offsets: IntArray
    kinds: IntArray | None = None

    @classmethod
    def joined(cls, rows: Sequence[Sequence[int]], kinds: Sequence[Sequence[int]] | None = None) -> Self:
        """Return the tokens of texts, given as a list of ids, and perhaps of types, for each."""
        ids, types = (np.fromiter(chain.from_iterable(one), dtype=np.int64) for one in (rows, kinds or []))
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        return cls(ids, offsets_of(lengths), None if kinds is None else types)

    @property
    def lengths(self) -> IntArray:
        """(n,) number of tokens of each text."""
        return np.diff(self.offsets)

    def of(self, texts: IntArray) -> "TokenIds":
        """Return the tokens of some of the texts, given by their places."""
        lengths = self.lengths[texts]
        chosen = slice_places(self.offsets[texts], lengths)
        kinds = None if self.kinds is None else self.kinds[chosen]
        return TokenIds(self.ids[chosen], offsets_of(lengths), kinds)

    def cut(self, limit: int) -> "TokenIds":
        """Return the tokens with at most `limit` of each text; the last, which ends a text, is kept."""
        if len(self.lengths) == 0 or int(self.lengths.max()) <= limit:
            return self
        lengths = np.minimum(self.lengths, limit)
        ids = self.ids[slice_places(self.offsets[:-1], lengths)]
        ids[np.cumsum(lengths) - 1] = self.ids[self.offsets[1:] - 1]
        return TokenIds(ids, offsets_of(lengths))

    def batches(self, limit: int) -> Iterator[tuple[IntArray, "TokenIds"]]:
        """Yield batches of texts of similar length: the places of the texts, and their tokens."""
        for texts in batches_by_length(self.lengths, limit):
            yield texts, self.of(texts)

    def padded(self, padding: int = 0) -> tuple[IntArray, IntArray, BoolArray]:
        """Return the ids and the types in a row for each text, and which of them are tokens; (n, s) each.

        padding: id that fills a row up.
        """
        mask = np.arange(int(self.lengths.max())) < self.lengths[:, None]
        ids, kinds = np.full(mask.shape, padding), np.zeros(mask.shape, dtype=np.int64)
        ids[mask] = self.ids
        kinds[mask] = 0 if self.kinds is None else self.kinds
        return ids, kinds, mask


def batches_by_length(lengths: IntArray, limit: int) -> Iterator[IntArray]:
    """Group texts of similar length into batches. Texts without tokens are left out.

    lengths: (n,) tokens of each text.
    limit: most tokens of a batch, padding included; a longer text is a batch by itself. No text of a batch is
        less than half as long as its longest.
    Returns an iterator over arrays of indices, longest texts first.
    """
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    first = 0
    while first < len(order):
        longest = int(lengths[order[first]])
        batch = order[first : first + max(1, limit // longest)]
        batch = batch[2 * lengths[batch] >= longest]
        yield batch
        first += len(batch)


def read_tokenizer(file: Path, *, limit: int | None = None, lower: bool = False, **changes: Any) -> Any:
    """Return the `tokenizers.Tokenizer` of a file, without padding; the same arguments make one object.

    limit: tokens after which texts are cut; default: none. lower: put texts in lower case first.
    changes: attributes of the normalizer of a BERT, which others do not have.
    Raises what the library raises.
    """
    return _read_tokenizer(file, file.stat().st_mtime_ns, limit, lower, tuple(sorted(changes.items())))


@lru_cache(maxsize=4)
def _read_tokenizer(file: Path, mtime: int, limit: int | None, lower: bool, changes: tuple[Any, ...]) -> Any:
    from tokenizers import Tokenizer, normalizers

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if limit is not None:
        tokenizer.enable_truncation(limit)
    given = tokenizer.normalizer
    if isinstance(given, normalizers.BertNormalizer):
        for name, value in changes:
            setattr(given, name, value)
    if lower:
        steps = [normalizers.Lowercase(), *([] if given is None else [given])]
        tokenizer.normalizer = normalizers.Sequence(steps)
    return tokenizer


def read_ids(tokenizer: Any, texts: Sequence[str], at_once: int) -> TokenIds:
    """Tokenize texts, with special tokens, `at_once` of them together: that bounds the memory needed."""
    batches = (texts[first : first + at_once] for first in range(0, max(len(texts), 1), at_once))
    parts = [TokenIds.joined([one.ids for one in tokenizer.encode_batch_fast(batch)]) for batch in batches]
    lengths = np.concatenate([part.lengths for part in parts])
    return TokenIds(np.concatenate([part.ids for part in parts]), offsets_of(lengths))
