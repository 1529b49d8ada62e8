"""Rerankers from sentence-transformers' cross-encoders."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from precise_rag._extras import require
from precise_rag._processes import Loaded, PerProcess, ProcessLock
from precise_rag.checks import check_choice
from precise_rag.encoders.local import check_no_code, content_name
from precise_rag.encoders.onnx import on_onnx, opened
from precise_rag.encoders.onnx_file import OnnxFile, logits_of
from precise_rag.encoders.token_ids import TokenIds
from precise_rag.errors import ModelError
from precise_rag.tokens import readable_texts
from precise_rag.types import Candidate, FloatArray, ScoreScale
from precise_rag.vectors import probabilities

Logits = Callable[[str, Sequence[str]], FloatArray]
"""Reads a query with each of n texts, and returns the (n,) logits."""


class CrossEncoderReranker(Loaded):
    """A CrossEncoder of sentence-transformers with one output.

    name_or_path: a model on the hub, or a local folder. On a CPU, ONNX Runtime runs those with a file
        onnx/model.onnx or model.onnx; torch runs the rest, and all of them on a GPU.
    device: such as "cpu"; default: a GPU if torch can use one.
    batch_size: pairs that torch reads together.
    score_scale: "probability" (default), the sigmoid of the model's logit, or "logit", as in SAGE.

    The activation in the model's configuration is ignored. The model is loaded at its first use, in bfloat16
    on CUDA. A copy is the reranker itself; a pickle has no weights.
    Raises ModelError if it cannot be loaded, has more than one output, or is a folder that names code of
    its own.
    """

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        device: str | None = None,
        batch_size: int = 32,
        score_scale: ScoreScale = "probability",
    ) -> None:
        check_choice("score_scale", score_scale, ("probability", "logit"))
        self.name = self._content = str(name_or_path)
        self.score_scale: ScoreScale = score_scale
        if (folder := Path(name_or_path)).is_dir():
            check_no_code(folder)
            self._content = content_name(folder)
        self._again = partial(
            type(self), self.name, device=device, batch_size=batch_size, score_scale=score_scale
        )
        self._device = device
        self._batch_size = batch_size
        self._logits: PerProcess[Logits] = PerProcess()

    @property
    def _identity(self) -> str:
        return self._content

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) scores on the `score_scale`, one per candidate, in their order."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        query, *texts = readable_texts([query, *(c.text for c in candidates)])
        logits = self._logits.get(self._load)(query, texts)
        return logits if self.score_scale == "logit" else probabilities(logits).astype(np.float32)

    def _load(self) -> Logits:
        return on_onnx(_without_torch, self.name, self._device) or self._in_torch()

    def _in_torch(self) -> Logits:
        nn, lock = require("torch", extra="torch").nn, ProcessLock()
        module = require("sentence_transformers", extra="torch")
        try:
            model = module.CrossEncoder(self.name, device=self._device, trust_remote_code=False)
        except ImportError:
            raise
        except Exception as error:  # a damaged folder can raise almost anything
            raise ModelError(
                f"cannot load the cross-encoder {self.name!r}: {str(error).partition(chr(10))[0]} "
                "(a name needs a network or a local copy; load_reranker() needs neither)"
            ) from error
        if model.num_labels != 1:
            raise ModelError(f"the cross-encoder {self.name!r} must have one output, got {model.num_labels}")
        model = model.bfloat16() if model.device.type == "cuda" else model

        def logits(query: str, texts: Sequence[str]) -> FloatArray:
            pairs = [(query, text) for text in texts]
            options = {"batch_size": self._batch_size, "show_progress_bar": False}
            with lock:
                return np.asarray(model.predict(pairs, activation_fn=nn.Identity(), **options), np.float32)

        return logits


def _without_torch(name_or_path: str, *, download: bool) -> Logits:
    """Load a cross-encoder on the CPU; of long pairs it reads the beginnings. As for `OnnxEncoder`."""
    folder = Path(name_or_path)
    reading = opened(name_or_path, folder if folder.is_dir() else None, download=download)
    tokenizer, network = reading.tokenizer(reading.limit), OnnxFile(reading)

    def logits(query: str, texts: Sequence[str]) -> FloatArray:
        rows = tokenizer.encode_batch_fast([(query, text) for text in texts])
        return logits_of(network, TokenIds.joined([row.ids for row in rows], [row.type_ids for row in rows]))

    return logits
