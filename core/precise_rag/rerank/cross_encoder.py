"""Any sentence-transformers CrossEncoder with one output, as a reranker."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import ModelError
from precise_rag.types import Candidate, FloatArray, ScoreScale


class CrossEncoderReranker:
    """Probabilities from a cross-encoder: its logit through one sigmoid, whatever the model's own
    configuration would do.

    The model is loaded at the first use, in bf16 on CUDA. Raises ModelError if it cannot be loaded
    or gives more than one number per pair.
    """

    score_scale: ScoreScale = "probability"

    def __init__(self, name_or_path: str | Path, *, device: str | None = None, batch_size: int = 32) -> None:
        self.name = str(name_or_path)
        self._device = device
        self._batch_size = batch_size
        self._lock = Lock()

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """(n,) probabilities, one per candidate, in the order given."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        torch = require("torch", extra="torch")
        with self._lock:
            scores = self._model.predict(
                [(query, c.text) for c in candidates],
                batch_size=self._batch_size,
                activation_fn=torch.nn.Sigmoid(),
                show_progress_bar=False,
            )
        return np.asarray(scores, dtype=np.float32)

    @cached_property
    def _model(self) -> Any:
        module = require("sentence_transformers", extra="torch")
        try:
            model = module.CrossEncoder(self.name, device=self._device)
        except (OSError, ValueError) as error:
            raise ModelError(
                f"cannot load the cross-encoder {self.name!r}: {str(error).splitlines()[0]} "
                "(a name needs the network or a local copy; load_reranker() needs neither)"
            ) from error
        if model.num_labels != 1:
            raise ModelError(
                f"{self.name!r} gives {model.num_labels} numbers per pair; a reranker must give one score"
            )
        return model.bfloat16() if model.device.type == "cuda" else model
