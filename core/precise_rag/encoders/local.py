"""What encoders that run on this machine share: their names, their tokens, and batches by length."""

import hashlib
import json
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from precise_rag._processes import Loaded, ProcessLock
from precise_rag.checkpoints.saved import file_sha256, packaged_model, read_model_file
from precise_rag.encoders.token_ids import TokenIds, read_ids, read_tokenizer
from precise_rag.errors import ModelError
from precise_rag.tokens import estimate_token_counts, readable_texts
from precise_rag.types import IntArray

MINILM = "all-MiniLM-L6-v2"
"""Name of the encoder that ships with precise-rag, its matrices in int8."""
_PACKAGED_SHA256 = "237c03ce4e69cc05a0216fba404fec9e305997cd8cb2dd2ab479eb3924db2256"
MINILM_SHA256 = frozenset(
    {"53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", _PACKAGED_SHA256}
)
"""Checksums of model.safetensors: in sentence-transformers/all-MiniLM-L6-v2, and in the package."""

_READ_AT_ONCE = 4_096
"""Texts that are tokenized together; bounds the memory that the tokenizer needs."""
_SETTINGS = ("modules.json", "router_config.json", "config.json", "config_sentence_transformers.json")
_CLASS_KEYS = (
    "type",
    "types",
    "activation_function",
    "activation_fn",
    "sbert_ce_default_activation_function",
)
_CLASS = re.compile(r"\w+|(torch\.nn|sentence_transformers)(\.\w+)+")
"""Names that are not refused; one without a dot is no class."""
_RECENT_CALLS = 4
"""Calls whose tokens are kept, so that counting tokens and then encoding tokenizes once."""


class LocalEncoder(Loaded):
    """Base of encoders that run on this machine.

    name_or_path: model name on the Hugging Face hub, or a folder.
    device: (also an attribute) where it runs.
    source: (attribute) the name or folder for `load_encoder` that loads the encoder again.

    Threads can share an encoder. A copy is the encoder itself; a pickle has no weights, and the model is
    loaded again.
    """

    def __init__(self, name_or_path: str | Path, *, device: str | None = None) -> None:
        self.source, self._folder, self._name = located(name_or_path)
        self.device = device
        self._read: deque[tuple[list[str], TokenIds]] = deque(maxlen=_RECENT_CALLS)
        self._reading = ProcessLock()

    @property
    def name(self) -> str:
        """The model's name; for a folder, the folder's name and a hash of its weights and settings."""
        return self._name

    @property
    @abstractmethod
    def tokenizer(self) -> Any:
        """The model's `tokenizers.Tokenizer` without truncation, or None if it has none."""

    @property
    def _again(self) -> "partial[LocalEncoder]":  # type: ignore[override]
        return partial(type(self), self.source, device=self.device)

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Count the tokens of n texts, without special tokens and truncation. Returns (n,) int64."""
        texts = readable_texts(texts)
        if self.tokenizer is None:
            return estimate_token_counts(texts)
        special: int = self.tokenizer.num_special_tokens_to_add(False)
        return self._token_ids(texts).lengths - special

    def _token_ids(self, texts: Sequence[str]) -> TokenIds:
        """Tokenize texts, with special tokens and without truncation; the last calls are remembered."""
        wanted = list(texts)
        with self._reading:
            for known, ids in self._read:
                if known == wanted:
                    return ids
            ids = read_ids(self.tokenizer, wanted, _READ_AT_ONCE)
            if len(wanted) <= _READ_AT_ONCE:
                self._read.append((wanted, ids))
        return ids


def count_word_pieces(texts: Sequence[str]) -> IntArray:
    """Count the tokens of n texts as the packaged encoder does, without loading it. Returns (n,) int64."""
    tokenizer, texts = read_tokenizer(packaged_minilm() / "tokenizer.json"), readable_texts(texts)
    parts = (texts[first : first + _READ_AT_ONCE] for first in range(0, len(texts), _READ_AT_ONCE))
    read = (tokenizer.encode_batch_fast(part, add_special_tokens=False) for part in parts)
    return np.array([len(encoding) for part in read for encoding in part], dtype=np.int64)


@cache
def packaged_minilm() -> Path:
    """Return the folder of the packaged model. Raises ModelError if the checksum of its weights is wrong."""
    folder = packaged_model("encoder-minilm")
    if file_sha256(folder / "model.safetensors") != _PACKAGED_SHA256:
        raise ModelError(
            f"{folder / 'model.safetensors'} is not the file that this version of precise-rag ships; run: "
            "pip install --force-reinstall --no-deps precise-rag"
        )
    return folder


def located(name_or_path: str | Path) -> tuple[str, Path | None, str]:
    """Return the source of a model, its folder if it is on this machine, and its name.

    Raises ModelError if a folder has no weights, or a file of the packaged model has the wrong checksum.
    """
    source = str(name_or_path).removeprefix("sentence-transformers/")
    folder = Path(name_or_path)
    if folder.is_dir():
        return str(folder.resolve()), folder, content_name(folder)
    return source, packaged_minilm() if source == MINILM else None, source


def check_no_code(folder: Path) -> None:
    """Raise ModelError if the settings of a model name classes outside of sentence-transformers and torch.nn.

    sentence-transformers would import and call them, also from Python files of the folder.
    """
    for file in sorted(file for name in _SETTINGS for file in folder.rglob(name)):
        try:
            settings = json.loads(read_model_file(file).decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{file} cannot be read ({error}); install the model again") from error
        for name in _class_names(settings):
            if isinstance(name, str) and not _CLASS.fullmatch(name):
                raise ModelError(
                    f"{file} names {name!r}, which is not a part of sentence-transformers; "
                    "models with code of their own are not loaded"
                )


def _class_names(settings: Any) -> Iterator[object]:
    """Yield what settings have under the keys that name classes."""
    if isinstance(settings, list):
        for item in settings:
            yield from _class_names(item)
    elif isinstance(settings, dict):
        for key, value in settings.items():
            if key in _CLASS_KEYS:
                yield from value.values() if isinstance(value, dict) else [value]
            else:
                yield from _class_names(value)


def content_name(folder: Path) -> str:
    """Name the model in a folder by its weights and settings. Raises ModelError if it has no weights."""
    weights = sorted(f for ending in ("*.safetensors", "*.bin") for f in folder.rglob(ending))
    if not weights:
        raise ModelError(f"{folder} contains no weights (*.safetensors or *.bin); pass the folder of a model")
    digests = [file_sha256(file) for file in weights]
    if len(digests) == 1 and digests[0] in MINILM_SHA256:
        return MINILM
    settings = [f for f in sorted(folder.rglob("*.json")) if f.name != "data_config.json"]
    digests += [file_sha256(file) for file in settings]
    return f"{folder.resolve().name}@{hashlib.sha256(''.join(digests).encode()).hexdigest()[:16]}"


def batches_by_length(lengths: IntArray, limit: int) -> Iterator[IntArray]:
    """Group texts of similar length into batches.

    lengths: (n,) tokens of each text.
    limit: most tokens of a batch, padding included; a longer text is a batch by itself.
    Returns an iterator over arrays of indices, longest texts first.
    """
    order = np.argsort(-lengths, kind="stable")
    first = 0
    while first < len(order):
        size = max(1, limit // max(int(lengths[order[first]]), 1))
        yield order[first : first + size]
        first += size
