"""Token ids in arrays, and a faster way to pass them to a sentence-transformers model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from precise_rag._extras import require
from precise_rag.ragged import slice_places
from precise_rag.types import IntArray

_PROBES = ["The cats' naïve  Query,\\n ran.", "two"]


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


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Makes a model's inputs from token ids, so that texts are not tokenized a second time.

    names: the model's input tensors.
    others: its other inputs.
    padding: id of the padding token.
    limit: tokens of a text that the model reads.
    """

    names: frozenset[str]
    others: dict[str, Any]
    padding: int
    limit: int

    @classmethod
    def of(cls, model: Any, tokenizer: Any) -> Self | None:
        """Return the inputs for a model, or None if they would change its vectors, as with prompts."""
        padding = getattr(model.tokenizer, "pad_token_id", None)
        if tokenizer is None or padding is None:
            return None
        torch = require("torch", extra="torch")
        features = getattr(model, "preprocess", model.tokenize)(_PROBES)
        names = frozenset(name for name, value in features.items() if torch.is_tensor(value))
        if not names <= {"input_ids", "attention_mask", "token_type_ids"}:
            return None
        others = {name: value for name, value in features.items() if name not in names}
        inputs = cls(names, others, padding, model.max_seq_length or np.iinfo(np.int64).max)
        own = model.encode_document(_PROBES, show_progress_bar=False)
        same = inputs.encode(model, read_ids(tokenizer, _PROBES, len(_PROBES)), [0, 1]).float().cpu().numpy()
        return inputs if own.shape == same.shape and np.allclose(own, same, atol=1e-4) else None

    def fit(self, tokens: TokenIds, batch: list[int]) -> bool:
        """Return whether the model reads all tokens of each text in the batch."""
        return int(tokens.lengths[batch].max()) <= self.limit

    def encode(self, model: Any, tokens: TokenIds, batch: list[int]) -> Any:
        """Encode a batch.

        model: the sentence-transformers model.
        tokens: the tokens of all texts.
        batch: indices of n texts.
        Returns a tensor of (n, d) vectors, not scaled, on the model's device, which may still compute it.
        """
        torch = require("torch", extra="torch")
        starts, lengths = tokens.offsets[batch], tokens.lengths[batch]
        real = np.arange(int(lengths.max())) < lengths[:, None]
        ids = np.full(real.shape, self.padding, dtype=np.int64)
        ids[real] = tokens.ids[(starts[:, None] + np.arange(real.shape[1]))[real]]
        arrays = {"input_ids": ids, "attention_mask": real.astype(np.int64), "token_type_ids": 0 * ids}
        tensors = {name: on_device(torch.from_numpy(arrays[name]), model.device) for name in self.names}
        model.eval()
        with torch.inference_mode():
            return model({**tensors, **self.others})["sentence_embedding"]


def on_device(tensor: Any, device: Any) -> Any:
    """Copy a tensor to a device; to CUDA from pinned memory, without waiting."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
