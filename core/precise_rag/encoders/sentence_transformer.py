"""sentence-transformers models as encoders, on CPU or GPU."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag._processes import ProcessLock
from precise_rag.encoders.bert_files import float32_folder
from precise_rag.encoders.hub import check_reachable
from precise_rag.encoders.local import Done, LocalEncoder, Role, batches_by_length, check_no_code
from precise_rag.encoders.prompts import prompts_of
from precise_rag.errors import ModelError
from precise_rag.types import FloatArray, IntArray

_BATCH_TOKENS = {"cpu": 4_096}
_GPU_BATCH_TOKENS = 65_536
_WAITING = 16
"""Batches whose vectors may be on their way from a GPU, so that they need little memory there."""


class SentenceTransformerEncoder(LocalEncoder):
    """An encoder that runs a sentence-transformers model with torch.

    name_or_path: model name on the Hugging Face hub, or a folder.
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
        self._tokenizer: Any = None
        self._lock = ProcessLock()

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        model = self.module
        older = "get_sentence_embedding_dimension"
        name = "get_embedding_dimension" if hasattr(model, "get_embedding_dimension") else older
        return int(getattr(model, name)())

    @property
    def tokenizer(self) -> Any:
        """The model's `tokenizers.Tokenizer` without truncation, or None if it has none."""
        _ = self.module
        return self._tokenizer

    def _fill(self, rows: FloatArray, texts: Sequence[str], role: Role, done: Done) -> None:
        """Encode in batches by length.

        Vectors leave a GPU while it computes the next batch; every _WAITING batches it is waited for.
        """
        model = self.module
        encode = model.encode_query if role == "query" else model.encode_document
        order: list[IntArray] = []
        batches: list[Any] = []
        lengths = np.minimum(self.count_tokens(texts), model.max_seq_length or np.iinfo(np.int64).max) + 2
        limit = _BATCH_TOKENS.get(model.device.type, _GPU_BATCH_TOKENS)
        device = model.device
        with fast_precision(device.type):
            for batch in batches_by_length(lengths, limit):
                given = [texts[row] for row in batch.tolist()]
                with self._lock:
                    vectors = encode(
                        given, batch_size=len(given), show_progress_bar=False, convert_to_tensor=True
                    )
                    batches.append(leaving(vectors))
                order.append(batch)
                if len(order) == _WAITING:
                    rows[np.concatenate(order)] = arrived(batches, device)
                    order, batches = [], []
                done(len(batch))
            if order:
                rows[np.concatenate(order)] = arrived(batches, device)

    @property
    def module(self) -> Any:
        """The sentence-transformers model with its prompts, loaded at its first use."""
        with self._lock:
            if self._model is None:
                sentence_transformers = require("sentence_transformers", extra="torch")
                readable = nullcontext(self.source) if self._folder is None else float32_folder(self._folder)
                with readable as source:
                    model = _load(sentence_transformers, source, self.device)
                    self._tokenizer = _plain_tokenizer(model)
                given = {"prompts": model.prompts, "default_prompt_name": model.default_prompt_name}
                model.prompts |= prompts_of(given, self.source)._asdict()
                self._model = model
        return self._model


def leaving(rows: Any) -> Any:
    """Return a tensor in float32 on its way to the CPU: from CUDA to pinned memory, without waiting."""
    return rows.float().to("cpu", non_blocking=rows.device.type == "cuda")


def arrived(parts: Sequence[Any], device: Any) -> FloatArray:
    """Wait for a device, and return the rows of tensors that were `leaving` it."""
    torch = require("torch", extra="torch")
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    rows: FloatArray = torch.cat(list(parts)).numpy()
    return rows


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
    try:
        try:
            return sentence_transformers.SentenceTransformer(
                str(source), device=device, local_files_only=True, trust_remote_code=False
            )
        except ImportError:
            raise
        except Exception as error:  # a damaged folder can raise almost anything
            if isinstance(source, Path):
                raise ModelError(f"{source} is not a sentence-transformers model: {error!r}") from error
            if not isinstance(error, OSError | ValueError):
                raise ModelError(f"encoder {source!r} cannot be loaded: {error!r}") from error
        check_reachable(str(source))
        return sentence_transformers.SentenceTransformer(source, device=device, trust_remote_code=False)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"encoder {str(source)!r} cannot be loaded: {error}") from error
    finally:
        if shown:
            logging.enable_progress_bar()


def _plain_tokenizer(model: Any) -> Any:
    """Copy the model's fast tokenizer, without truncation and padding; None if it has none."""
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    copy = type(backend).from_str(backend.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy
