"""What encoders that run on this machine share: their names, their tokens, and batches by length."""

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from precise_rag._data import packaged_toml
from precise_rag._processes import Loaded
from precise_rag._progress import progress_bar
from precise_rag.checkpoints import file_sha256, packaged_model, read_model_file
from precise_rag.encoded import encoded_rows
from precise_rag.encoders.token_ids import TokenIds, read_ids, read_tokenizer
from precise_rag.errors import ModelError
from precise_rag.tokens import estimate_token_counts, readable_texts
from precise_rag.types import FloatArray, IntArray
from precise_rag.vectors import linear, unit_rows

MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Checksum of model.safetensors in sentence-transformers/all-MiniLM-L6-v2."""
E5 = "multilingual-e5-small-6"
"""Name of the encoder that is the default: six layers made from multilingual-e5-small."""
PACKAGED = packaged_toml("encoders/packaged.toml")
"""Encoders that ship with precise-rag, by name: "folder", and "files" with their checksums."""
QUERY_MAP = "query_map.npy"
_NAMES = {its["files"]["model.safetensors"]: name for name, its in PACKAGED.items()} | {MINILM_SHA256: MINILM}
_READ_AT_ONCE = 4_096
"""Texts that are tokenized together; bounds the memory that the tokenizer needs."""
_LITTLE, _SPARE = 1.25, 1.1
"""A text up to so many times as long as what is read at once is cut off: means of parts were found less
beside whole texts. Parts are so much shorter: not all of them have as many tokens."""
_SETTINGS = ("modules.json", "router_config.json", "config.json", "config_sentence_transformers.json")
_CLASS_KEYS = "type", "types", "activation_function", "activation_fn", "sbert_ce_default_activation_function"
_CLASS = re.compile(r"\w+|(torch\.nn|sentence_transformers)(\.\w+)+")
"""Names of classes that are loaded, and words without a dot, which name no class."""
Role = Literal["query", "document"]
"""What a text is to its encoder."""
Done = Callable[[int], object]


class LocalEncoder(Loaded):
    """Base of encoders that run on this machine.

    name_or_path: model name on the Hugging Face hub, or a folder.
    device: (also an attribute) where it runs.
    name: (attribute) the model's name; for a folder, its name and a hash of its weights and settings.
    source: (attribute) the name or folder for `load_encoder` that loads the encoder again.
    tokenizer: (attribute) its `tokenizers.Tokenizer` without truncation, or None if it has none.
    Raises ModelError if a folder has no weights, or a file of a packaged model has the wrong checksum.

    Threads can share an encoder. A copy is the encoder itself; a pickle has no weights, and the model is
    loaded again.
    """

    tokenizer: Any

    def __init__(self, name_or_path: str | Path, *, device: str | None = None) -> None:
        self.source = self.name = str(name_or_path).removeprefix("sentence-transformers/")
        self._folder: Path | None = None  # on this machine
        if self.source in PACKAGED:
            self._folder = packaged_encoder(self.source)
        elif (folder := Path(name_or_path)).is_dir():
            self.source, self._folder, self.name = str(folder.resolve()), folder, content_name(folder)
        self.device = device
        self._last: tuple[list[str], TokenIds | None] = [], None

    @property
    def _again(self) -> "partial[LocalEncoder]":  # type: ignore[override]
        return partial(type(self), self.source, device=self.device)

    @cached_property
    @abstractmethod
    def dimension(self) -> int:
        """Length of a vector."""

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> FloatArray:
        """Encode n texts, each after its prompt. Returns (n, d) float32 rows of unit length, in order.

        A text much longer than the model reads is read in parts of equal length; its vector is their mean.
        """
        return self._encode(texts, "document", show_progress)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode n queries, as `encode` does; the model may have a prompt and a linear map for them."""
        rows = self._encode(queries, "query", show_progress=False)
        if self._query_map is None:
            return rows
        mapped = linear(np.pad(rows, ((0, 0), (0, 1)), constant_values=1.0), self._query_map)
        return encoded_rows(mapped, len(queries), source=self.name)

    @cached_property
    def _query_map(self) -> FloatArray | None:
        """(d, d + 1) that takes a query's vector and a one behind it near answers in any language."""
        if self.source not in PACKAGED or QUERY_MAP not in PACKAGED[self.source]["files"]:
            return None
        found: FloatArray = np.load(packaged_encoder(self.source) / QUERY_MAP).astype(np.float32)
        return found

    def _encode(self, texts: Sequence[str], role: Role, show_progress: bool) -> FloatArray:
        texts = readable_texts(texts)
        counts = self._n_parts(texts)
        parts = [
            text[len(text) * part // n : len(text) * (part + 1) // n]
            for text, n in zip(texts, counts.tolist(), strict=True)
            for part in range(n)
        ]
        rows = np.zeros((len(parts), self.dimension), dtype=np.float32)
        if parts:
            with progress_bar(shown=show_progress, total=len(parts), desc="encoding", unit="text") as bar:
                self._fill(rows, parts, role, bar.update)
            rows = np.add.reduceat(unit_rows(rows), np.cumsum(counts) - counts)
        return encoded_rows(rows, len(texts), source=self.name)

    def _n_parts(self, texts: Sequence[str]) -> IntArray:
        """(n,) number of parts in which each text is read."""
        limit = self._limit
        if all(len(text) <= limit for text in texts):
            return np.ones(len(texts), dtype=np.int64)
        lengths = self.count_tokens(texts)
        return np.where(lengths <= _LITTLE * limit, 1, np.ceil(_SPARE * lengths / limit)).astype(np.int64)

    @property
    @abstractmethod
    def _limit(self) -> float:
        """Tokens that the model reads at once."""

    @abstractmethod
    def _fill(self, rows: FloatArray, texts: Sequence[str], role: Role, done: Done) -> None:
        """Write the vectors of n texts into (n, d) rows, and report how many are `done`."""

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        """Count the tokens of n texts, without prompts, special tokens and truncation. Returns (n,) int64."""
        if self.tokenizer is None:
            return estimate_token_counts(readable_texts(texts))
        special: int = self.tokenizer.num_special_tokens_to_add(False)
        return self.tokens(texts).lengths - special

    def tokens(self, texts: Sequence[str]) -> TokenIds:
        """Tokenize texts, with special tokens and without truncation.

        Those of the last call are remembered, so that counting tokens and then encoding tokenizes once.
        """
        wanted = list(readable_texts(texts))
        known, ids = self._last
        if ids is None or known != wanted:
            ids = read_ids(self.tokenizer, wanted, _READ_AT_ONCE)
            if len(wanted) <= _READ_AT_ONCE:
                self._last = wanted, ids
        return ids


def count_packaged_tokens(texts: Sequence[str]) -> IntArray:
    """Count the tokens of n texts as the default encoder does, without loading it. Returns (n,) int64."""
    tokenizer = packaged_tokenizer()
    special: int = tokenizer.num_special_tokens_to_add(False)
    return read_ids(tokenizer, readable_texts(texts), _READ_AT_ONCE).lengths - special


def packaged_tokenizer() -> Any:
    """Return the `tokenizers.Tokenizer` of the default encoder, without loading the encoder."""
    return read_tokenizer(packaged_encoder(E5) / "tokenizer.json")


@cache
def packaged_encoder(name: str) -> Path:
    """Return the folder of one of `PACKAGED`. Raises ModelError if a checksum of its files is wrong."""
    folder = packaged_model(PACKAGED[name]["folder"])
    for file, checksum in PACKAGED[name]["files"].items():
        if file_sha256(folder / file) != checksum:
            raise ModelError(
                f"{folder / file} is not the file that this version of precise-rag ships; run: "
                "pip install --force-reinstall --no-deps precise-rag"
            )
    return folder


def check_no_code(folder: Path) -> None:
    """Raise ModelError if the settings of a model name classes outside of sentence-transformers and torch.nn.

    sentence-transformers would import and call them, also from Python files of the folder.
    """

    def checked(settings: dict[str, Any]) -> dict[str, Any]:
        for named in (settings[key] for key in _CLASS_KEYS if key in settings):
            for name in named.values() if isinstance(named, dict) else [named]:
                if isinstance(name, str) and not _CLASS.fullmatch(name):
                    raise ModelError(
                        f"{file} names {name!r}, which is not a part of sentence-transformers; "
                        "models with code of their own are not loaded"
                    )
        return settings

    for file in sorted(file for name in _SETTINGS for file in folder.rglob(name)):
        try:
            json.loads(read_model_file(file).decode("utf-8"), object_hook=checked)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{file} cannot be read ({error}); install the model again") from error


def torch_weights(folder: Path) -> list[Path]:
    """Return the files of weights in a folder that torch reads."""
    return sorted(f for ending in ("*.safetensors", "*.bin") for f in folder.rglob(ending))


def content_name(folder: Path) -> str:
    """Name the model in a folder by its weights and settings. Raises ModelError if it has no weights.

    An ONNX file is read only in a folder without other weights: it is the same model in another form.
    """
    weights = torch_weights(folder) or sorted(folder.rglob("model.onnx*"))
    if not weights:
        raise ModelError(f"{folder} contains no weights (*.safetensors, *.bin, model.onnx) of a model")
    digests = [file_sha256(file) for file in weights]
    if len(digests) == 1 and digests[0] in _NAMES:
        return _NAMES[digests[0]]
    settings = [f for f in sorted(folder.rglob("*.json")) if f.name != "data_config.json"]
    digests += [file_sha256(file) for file in settings]
    return f"{folder.resolve().name}@{hashlib.sha256(''.join(digests).encode()).hexdigest()[:16]}"
