"""The trained cross-encoder as a reranker: the packaged one first, then the transformer on the best."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from cross_encoder import TransformerConfig, minilm_cross_encoder, minilm_tokenizer, padded

from precise_rag.checkpoint import load_checkpoint
from precise_rag.encoders.sentence_transformer import batches_by_length, fast_precision
from precise_rag.rerank.blend import Blend
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.types import Candidate, FloatArray, IntArray, ScoreScale

N_READ = 20
"""Candidates that the transformer reads."""

QUESTION_TOKENS = 64
CANDIDATE_TOKENS = 256
BATCH_TOKENS = 4_096


class Cascade:
    """Probabilities from a logistic line of the packaged reranker's judgement and the transformer's logit.

    What the transformer does not read keeps the packaged reranker's probability.
    """

    name = "cross-encoder"
    score_scale: ScoreScale = "probability"

    def __init__(self, folder: Path) -> None:
        config, tensors = load_checkpoint(folder)
        self.blend = Blend(config.get("blend", {"reads": 1.0}))
        sizes = TransformerConfig(n_layers=config["n_layers"], n_apart=config["n_apart"])
        self._network = minilm_cross_encoder(sizes).eval()
        state = self._network.state_dict()
        state.update({name: torch.from_numpy(tensor) for name, tensor in tensors.items()})
        self._network.load_state_dict(state)
        self._tokenizer = minilm_tokenizer()

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """(n,) probabilities, one per candidate, in the order given."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        rows, columns, scores = self.columns(query, candidates)
        scores[rows] = self.blend(columns)
        return scores

    def columns(
        self, query: str, candidates: Sequence[Candidate]
    ) -> tuple[IntArray, dict[str, FloatArray], FloatArray]:
        """Which candidates are read, what the blend sees of them, and the packaged probability of all."""
        first = packaged_reranker().judge(query, candidates)
        rows = np.argsort(-first.probability, kind="stable")[:N_READ]
        reads = self.logits(query, [candidates[row].text for row in rows])
        known = {name: getattr(first, name)[rows] for name in ("network", "prior", "reciprocal_rank")}
        return rows, {**known, "reads": reads}, first.probability.copy()

    def logits(self, query: str, texts: Sequence[str]) -> FloatArray:
        """(n,) what the transformer alone says of each text."""
        logits = np.zeros(len(texts), dtype=np.float32)
        with torch.inference_mode(), fast_precision("cpu"):
            asked, is_asked = padded(self._ids([query], QUESTION_TOKENS))
            question = self._network.read(asked, is_asked)
            ids = self._ids(texts, CANDIDATE_TOKENS)
            for rows in batches_by_length(np.array([len(row) for row in ids]), BATCH_TOKENS):
                shown, is_shown = padded([ids[row] for row in rows])
                both = question.expand(len(rows), -1, -1), is_asked.expand(len(rows), -1)
                found = self._network.score(*both, self._network.read(shown, is_shown), is_shown)
                logits[rows] = found.float().numpy()
        return logits

    def _ids(self, texts: Sequence[str], limit: int) -> list[list[int]]:
        found = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        return [row if len(row) <= limit else [*row[: limit - 1], row[-1]] for row in found]
