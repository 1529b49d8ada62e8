"""sentence-transformers models as encoders, on CPU or GPU."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from precise_rag._extras import require
from precise_rag._processes import ProcessLock
from precise_rag.checkpoints import dequantized, read_tensors
from precise_rag.encoders.hub import hub_files
from precise_rag.encoders.local import PACKAGED, Done, LocalEncoder, Role, check_no_code
from precise_rag.encoders.reading import prompts_of
from precise_rag.encoders.token_ids import batches_by_length
from precise_rag.errors import ModelError
from precise_rag.types import FloatArray

_BATCH_TOKENS = {"cpu": 4_096}
_GPU_BATCH_TOKENS = 65_536
_WAITING = 16
"""Batches whose vectors stay on a GPU together, so that they need little memory there."""


class SentenceTransformerEncoder(LocalEncoder):
    """An encoder that runs a sentence-transformers model with torch.

    device: "cpu", "cuda", "cuda:1", …; default: a GPU if available.
    Raises ModelError if a folder has no weights or names code of its own.

    The model is loaded on first use; one batch runs at a time. Batches hold texts of similar length. The
    model runs in bfloat16 on CUDA and on CPUs with fast bfloat16, otherwise in float32.
    """

    def __init__(self, name_or_path: str | Path, *, device: str | None = None) -> None:
        super().__init__(name_or_path, device=device)
        if self._folder is not None:
            check_no_code(self._folder)
        self._model: Any = None
        self._lock = ProcessLock()

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.module.encode(["width"], show_progress_bar=False).shape[1])

    @cached_property
    def tokenizer(self) -> Any:
        """The model's `tokenizers.Tokenizer` without truncation and padding, or None if it has none."""
        own = getattr(self.module.tokenizer, "backend_tokenizer", None)
        if own is None:
            return None
        copy = type(own).from_str(own.to_str())
        copy.no_truncation()
        copy.no_padding()
        return copy

    @property
    def _limit(self) -> int:
        return self.module.max_seq_length or np.iinfo(np.int64).max

    def _fill(self, rows: FloatArray, texts: Sequence[str], role: Role, done: Done) -> None:
        """Encode in batches by length.

        A GPU is waited for after every _WAITING batches, so that it computes while texts are tokenized.
        """
        torch, model = require("torch", extra="torch"), self.module
        encode = model.encode_query if role == "query" else model.encode_document
        lengths = np.minimum(self.count_tokens(texts), self._limit) + 2
        limit = _BATCH_TOKENS.get(model.device.type, _GPU_BATCH_TOKENS)
        batches = list(batches_by_length(lengths, limit))
        for first in range(0, len(batches), _WAITING):
            vectors = []
            for batch in batches[first : first + _WAITING]:
                given = [texts[row] for row in batch.tolist()]
                with self._lock, fast_precision(model.device.type):
                    vectors.append(
                        encode(given, batch_size=len(given), show_progress_bar=False, convert_to_tensor=True)
                    )
                done(len(batch))
            order = np.concatenate(batches[first : first + _WAITING])
            rows[order] = torch.cat(vectors).float().cpu().numpy()

    @property
    def module(self) -> Any:
        """The sentence-transformers model with its prompts, loaded at its first use."""
        with self._lock:
            if self._model is None:
                sentence_transformers = require("sentence_transformers", extra="torch")
                folder = self._folder
                given: AbstractContextManager[Path | str] = nullcontext(folder or self.source)
                if folder is not None and self.name in PACKAGED:
                    given = float32_folder(folder)
                with given as source:
                    model = _load(sentence_transformers, source, self.device)
                told = {"prompts": model.prompts, "default_prompt_name": model.default_prompt_name}
                model.prompts |= prompts_of(told, self.source)._asdict()
                self._model = model
        return self._model


@contextmanager
def float32_folder(folder: Path) -> Iterator[Path]:
    """Yield a copy of the folder of a packaged model with weights in float32, for torch; then remove it.

    Raises ModelError if the weights cannot be read.
    """
    weights = folder / "model.safetensors"
    with TemporaryDirectory(ignore_cleanup_errors=True) as made:
        shutil.copytree(folder, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns("model.*"))
        save_file(dequantized(read_tensors(weights)), Path(made, weights.name), metadata={"format": "pt"})
        yield Path(made)


def bfloat16_is_fast(device_type: str) -> bool:
    """Return whether bfloat16 is faster than float32: on CUDA, and on CPUs with AMX or AVX-512 BF16."""
    if device_type != "cpu":
        return device_type == "cuda"
    cpu = require("torch", extra="torch").cpu
    checks = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(cpu, check, bool)() for check in checks)


def fast_precision(device_type: str) -> AbstractContextManager[object]:
    """Return a context manager that computes in bfloat16 if that is faster."""
    if not bfloat16_is_fast(device_type):
        return nullcontext()
    torch = require("torch", extra="torch")
    context: AbstractContextManager[object] = torch.autocast(device_type, dtype=torch.bfloat16)
    return context


def _load(sentence_transformers: Any, source: Path | str, device: str | None) -> Any:
    """Load a model from disk or the local cache; from the hub only if it is in neither."""
    logging = require("transformers", extra="torch").utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    made = partial(sentence_transformers.SentenceTransformer, device=device, trust_remote_code=False)
    try:
        try:
            return made(str(source), local_files_only=True)
        except (OSError, ValueError):
            if isinstance(source, Path):
                raise
        hub_files(source)
        return made(source)
    except (ImportError, ModelError):
        raise
    except Exception as error:  # a damaged folder can raise almost anything
        raise ModelError(f"{source} cannot be loaded as an encoder: {error!r}") from error
    finally:
        if shown:
            logging.enable_progress_bar()
