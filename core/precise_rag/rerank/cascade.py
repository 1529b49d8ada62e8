"""The packaged reranker first, then a small cross-encoder on what it puts first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.models.checkpoint import dequantized, load_checkpoint
from precise_rag.rerank.blend import Blend, log_odds
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.types import Candidate, FloatArray, IntArray, ScoreScale

if TYPE_CHECKING:
    from precise_rag.rerank.pair_network import PairReader

CASCADE_FOLDER = Path(__file__).parent.parent / "models" / "reranker-cascade"


class Read(NamedTuple):
    """What the cascade knows of the candidates that it reads.

    rows (r,): which they are. columns: what the blend sees of each, "packaged" log-odds and the
    cross-encoder's logit "reads". first (n,): the packaged reranker's probability of every candidate.
    """

    rows: IntArray
    columns: dict[str, FloatArray]
    first: FloatArray


class CascadeReranker:
    """How likely each candidate is to hold what the query asks for, by reading the likeliest with the query.

    The packaged reranker judges all candidates. A cross-encoder (`PairNetwork`) then reads the query
    together with the `n_read` that it puts first, and one logistic line of both judgements gives their
    probability. The others follow in the order they have, less likely than any that was read. A
    candidate is read up to its 256th token.

    The network is loaded at the first use, on `device` (by default CUDA where there is one). Its lower
    layers are those of all-MiniLM-L6-v2, which the extra "offline" brings. Raises MissingExtra without
    torch, ModelError for damaged weights and where MiniLM cannot be found.
    """

    name = "cascade"
    score_scale: ScoreScale = "probability"

    def __init__(
        self, folder: str | Path = CASCADE_FOLDER, *, n_read: int = 20, device: str | None = None
    ) -> None:
        if n_read < 1:
            raise InputError(f"n_read is {n_read}; it must be at least 1 (load_reranker() reads none)")
        self._config, tensors = load_checkpoint(folder)
        self._tensors = dequantized(tensors)
        self.weights_sha256: str = self._config["weights_sha256"]
        self._blend = Blend(self._config["blend"])
        self._n_read = n_read
        self._device = device
        self._lock = Lock()

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """(n,) probabilities, one per candidate, in the order given."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        rows, columns, scores = self.read(query, candidates)
        read = self._blend(columns)
        if len(rows) < len(scores):
            unread = np.delete(np.arange(len(scores)), rows)
            scores[unread] *= min(1.0, float(read.min()) / max(float(scores[unread].max()), 1e-9))
        scores[rows] = read
        return scores

    def read(self, query: str, candidates: Sequence[Candidate]) -> Read:
        """What is known of n > 0 candidates before it becomes one probability each."""
        first = packaged_reranker().score(query, candidates)
        rows = np.argsort(-first, kind="stable")[: self._n_read]
        reads = self.logits(query, [candidates[row].text for row in rows])
        return Read(rows, {"packaged": log_odds(first[rows]), "reads": reads}, first)

    def logits(self, query: str, texts: Sequence[str]) -> FloatArray:
        """(n,) what the cross-encoder alone says of each text."""
        with self._lock:
            reader = self._reader
        return reader.logits(query, texts)

    @cached_property
    def _reader(self) -> PairReader:
        require("torch", extra="torch")
        from precise_rag.rerank.pair_network import PairReader, TransformerConfig

        sizes = TransformerConfig(n_layers=self._config["n_layers"], n_apart=self._config["n_apart"])
        return PairReader(sizes, self._tensors, self._device)


@cache
def cascade_reranker(device: str | None = None) -> CascadeReranker:
    """The cascade shipped with this package, read once for a device."""
    return CascadeReranker(device=device)
