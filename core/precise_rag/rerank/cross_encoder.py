"""Rerankers from sentence-transformers' cross-encoders."""

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag._processes import Loaded, ProcessLock
from precise_rag.encoders.local import check_no_code, content_name
from precise_rag.errors import InputError, ModelError
from precise_rag.tokens import readable_texts
from precise_rag.types import Candidate, FloatArray, ScoreScale


class CrossEncoderReranker(Loaded):
    """A sentence-transformers CrossEncoder with one output.

    name_or_path: a model on the hub, or a local folder. device: such as "cpu"; default:
    sentence-transformers'. batch_size: pairs in one forward pass. score_scale: "probability" (default), the
    sigmoid of the model's logit, or "logit", the logit itself, as in SAGE.

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
        if score_scale not in ("probability", "logit"):
            raise InputError(f'score_scale must be "probability" or "logit", got {score_scale!r}')
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
        self._lock = ProcessLock()

    @property
    def _identity(self) -> str:
        return self._content

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) probabilities, one per candidate, in their order."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        nn = require("torch", extra="torch").nn
        query, *texts = readable_texts([query, *(c.text for c in candidates)])
        with self._lock:
            scores = self._model.predict(
                [(query, text) for text in texts],
                batch_size=self._batch_size,
                activation_fn=nn.Identity() if self.score_scale == "logit" else nn.Sigmoid(),
                show_progress_bar=False,
            )
        return np.asarray(scores, dtype=np.float32)

    @cached_property
    def _model(self) -> Any:
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
        return model.bfloat16() if model.device.type == "cuda" else model
