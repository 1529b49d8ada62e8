"""The cascade: the packaged reranker, then a small cross-encoder on its best candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from precise_rag._extras import require
from precise_rag._processes import Loaded, PerProcess
from precise_rag.checkpoints.expected import check_config
from precise_rag.checkpoints.quantized import dequantized
from precise_rag.checkpoints.saved import load_checkpoint, packaged_model
from precise_rag.checks import check_number
from precise_rag.encoders.devices import runs_on_onnx
from precise_rag.encoders.int8_layers import Precision
from precise_rag.errors import InputError, ModelError
from precise_rag.rerank.candidate_texts import with_headings
from precise_rag.rerank.language import language_of, mostly_latin
from precise_rag.rerank.logistic_regression import LogisticRegression, log_odds
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pair_onnx import OnnxPairScorer
from precise_rag.rerank.pairs import Piece, TransformerConfig, check_trained
from precise_rag.sharing import in_turns
from precise_rag.types import Candidate, FloatArray, IntArray, ScoreScale

if TYPE_CHECKING:
    from precise_rag.rerank.pair_network import PairScorer

_FOLDER = packaged_model("reranker-cascade")

_SETTINGS = {"n_layers": int, "n_apart": int, "blend": dict, "unread": dict, "latin": dict}

_READ_FIRST, _READ_AT_ONCE = 8, 4
"""Candidates that are read together: at the start, and then."""


class Shortlist(NamedTuple):
    """The r candidates that the cross-encoder reads, with the judgements of both rerankers.

    rows: (r,) their rows in the list. columns: (r,) each: "packaged", the packaged reranker's
    log-odds, and "reads", the cross-encoder's logits. packaged: (n,) the packaged reranker's
    probabilities of all candidates, as in English. is_english: whether most candidates are in English.
    """

    rows: IntArray
    columns: dict[str, FloatArray]
    packaged: FloatArray
    is_english: bool


class CascadeReranker(Loaded):
    """Two-stage reranker: the packaged reranker on all candidates, then a cross-encoder on the best.

    The cross-encoder reads the query together with the candidates that the packaged reranker puts first:
    eight, then four more at a time, until four in a row are much less probable than the best. Of each it
    reads 256 tokens. The titles above it are read, too, where the query needs them (see `with_headings`), and
    some of the text around it where that is known (see `with_text_around`). A logistic regression over both
    judgements gives their probabilities, and one over the packaged reranker's alone those of the rest. Where
    most candidates are in another language than English, the log-odds are scaled and shifted. Texts that are
    mostly in another script than Latin are left to the packaged reranker. Of longer texts `rerank` has it
    read the sentences (`longest_text`). A text of another document can take one of the places that are read;
    otherwise it has as little part in a score as in the packaged reranker's.

    folder: a saved model; default: the one in the package.
    n_read: most candidates to read, at least 1; default 24.
    least: reading stops when the last four are all less probable than this share of the most probable one;
        default 0.1; 0 always reads `n_read`. Where one is likely, 12 are read at most as a rule.
    device: where the network runs, such as "cpu"; default: a GPU if torch can use one.
    precision: of its linear layers on a CPU, "float32" or "int8"; default: "int8", which is several times as
        fast and gives nearly the same logits.

    The network is loaded at its first use: into ONNX Runtime on a CPU, otherwise into torch. Its lower
    layers are those of the packaged all-MiniLM-L6-v2. Raises MissingExtra without torch on a GPU, ModelError
    if the weights are damaged.
    """

    name = "cascade"
    reads_around = True
    score_scale: ScoreScale = "probability"
    longest_text = 256
    is_calibrated = True

    def __init__(
        self,
        folder: str | Path = _FOLDER,
        *,
        n_read: int = 24,
        least: float = 0.1,
        device: str | None = None,
        precision: Precision = "int8",
    ) -> None:
        check_number("least", least, least=0, most=1)
        if n_read < 1:
            raise InputError(
                f"n_read must be at least 1, got {n_read}; "
                'load_reranker("packaged") works without the cross-encoder'
            )
        self._config, tensors = load_checkpoint(folder)
        check_config(folder, self._config, _SETTINGS)
        self._folder, self._tensors = folder, tensors
        check_trained(folder, tensors, self._config["n_layers"] - self._config["n_apart"])
        self.weights_sha256: str = self._config["weights_sha256"]
        self._again = partial(
            type(self), folder, n_read=n_read, least=least, device=device, precision=precision
        )
        self._regression = LogisticRegression(self._config["blend"])
        self._unread = LogisticRegression(self._config["unread"])
        self._latin = LogisticRegression(self._config["latin"])
        self._n_read, self._least = n_read, least
        self._device, self._precision = device, precision
        self._scorer: PerProcess[PairScorer | OnnxPairScorer] = PerProcess()

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) probabilities, one per candidate, in their order."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        if not mostly_latin(query):
            return packaged_reranker().score(query, candidates)
        readable = ~self.unread(query, candidates)
        rows, columns, packaged, is_english = self.shortlist(query, candidates, readable)
        scores = self._unread({"packaged": log_odds(packaged)})
        if len(rows):
            scores[rows] = self._regression(columns)
        return np.where(readable, self._levelled(scores, is_english), packaged)

    def unread(self, query: str, candidates: Sequence[Candidate]) -> npt.NDArray[np.bool_]:
        """Return which of n candidates are left to the packaged reranker, by their script or the query's."""
        if not mostly_latin(query):
            return np.ones(len(candidates), dtype=np.bool_)
        return np.array([not mostly_latin(c.text) for c in candidates], dtype=np.bool_)

    def _levelled(self, scores: FloatArray, is_english: bool) -> FloatArray:
        return scores if is_english else self._latin({"odds": log_odds(scores)})

    def shortlist(
        self, query: str, candidates: Sequence[Candidate], readable: npt.NDArray[np.bool_] | None = None
    ) -> Shortlist:
        """Judge n > 0 candidates with the packaged reranker, and the best of them with the cross-encoder.

        readable: (n,) whether the cross-encoder may read each; default: all.
        """
        given, candidates = candidates, with_headings(query, candidates, packaged_reranker().idf_table)
        packaged = packaged_reranker().as_in_english(query, candidates)
        is_english = language_of(query, (candidate.text for candidate in given)) == "english"
        rows = np.argsort(-packaged, kind="stable")
        rows = rows if readable is None else rows[readable[rows]]
        rows = rows[in_turns([given[row] for row in rows], self._n_read).rows]
        odds, logits = log_odds(packaged[rows]), np.zeros(0, dtype=np.float32)
        columns: dict[str, FloatArray] = {"packaged": odds[:0], "reads": logits}
        while len(logits) < len(rows):
            more = rows[len(logits) :][: _READ_AT_ONCE if len(logits) else _READ_FIRST]
            texts = [(given[row], candidates[row].text.removesuffix(given[row].text)) for row in more]
            pieces = [Piece(one.text, titles, one.before, one.after) for one, titles in texts]
            logits = np.append(logits, self.logits(query, pieces))
            columns = {"packaged": odds[: len(logits)], "reads": logits}
            read = self._levelled(self._regression(columns), is_english)
            if read[-_READ_AT_ONCE:].max() < self._least * read.max():
                break
        return Shortlist(rows[: len(logits)], columns, packaged, is_english)

    def load_model(self) -> None:
        """Load the networks now, not at the first candidate."""
        packaged_reranker()
        self._scorer.get(self._load)

    def logits(self, query: str, pieces: Sequence[Piece]) -> FloatArray:
        """Return the cross-encoder's (n,) logits of pieces of text."""
        return self._scorer.get(self._load).logits(query, pieces)

    def _load(self) -> PairScorer | OnnxPairScorer:
        config = TransformerConfig(n_layers=self._config["n_layers"], n_apart=self._config["n_apart"])
        if runs_on_onnx(self._device):
            return OnnxPairScorer(config, dequantized(self._tensors), self._precision)
        require("torch", extra="torch")
        from precise_rag.rerank.pair_network import PairScorer

        try:
            return PairScorer(config, dequantized(self._tensors), self._device)
        except (RuntimeError, ValueError, IndexError) as error:
            raise ModelError(f"the tensors in {self._folder} do not fit its config: {error}") from error


@cache
def cascade_reranker(device: str | None = None) -> CascadeReranker:
    """Return the packaged cascade, which stays loaded."""
    return CascadeReranker(device=device).once()
