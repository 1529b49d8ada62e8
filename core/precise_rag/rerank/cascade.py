"""The cascade: the packaged reranker, then a small cross-encoder on its best candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from precise_rag._extras import require
from precise_rag._processes import Loaded, PerProcess
from precise_rag.checkpoints import dequantized, load_checkpoint, packaged_model, read_model_file
from precise_rag.checks import check_number
from precise_rag.encoders.devices import runs_on_onnx
from precise_rag.encoders.load import default_encoder
from precise_rag.encoders.local import packaged_tokenizer
from precise_rag.errors import ModelError
from precise_rag.rerank.candidate_texts import with_cosines, with_headings, with_names_as_asked
from precise_rag.rerank.features import retrieval_scores
from precise_rag.rerank.logistic_regression import LogisticRegression, log_odds, matched
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pairs import NETWORK, Logits, Piece, network_checksum, onnx_logits, word_table
from precise_rag.rerank.query_terms import alone_with_code, begins_with_name
from precise_rag.sharing import in_turns
from precise_rag.types import Candidate, FloatArray, IntArray, ScoreScale

_FOLDER = packaged_model("reranker-cascade")
_SETTINGS = {"blend": dict, "blend_words": dict, "unread": dict, "network_sha256": str}
_LIKELY, _SURE = 0.2, 0.5
_COMPARED, _COMPARED_LATER = 400, 200
"""Where none has the first probability by its words, or the second when it is read, so many candidates are
encoded at most that no search has compared with the query: words say little then, as in another language."""
_READ_FIRST, _READ_AT_ONCE = 8, 4
"""Candidates that are read together: at the start, and then."""
_FIRST = 100.0
"""Log-odds that put what alone has a code of the query before all others that are to be read."""


class Shortlist(NamedTuple):
    """The r of n candidates that the cross-encoder reads, with the judgements of both rerankers.

    rows: (r,) their rows in the list. columns: (r,) each: "packaged", the packaged reranker's log-odds,
    "dense", the cosines, NaN where unknown, "alone", of `alone_with_code` and `begins_with_name`, and
    "reads", the cross-encoder's logits. packaged: (n,) the log-odds of all. order: (n,) what is not read
    stands in this order: `packaged` minus log2(1 + b), b candidates having a higher score in the search. If
    half of these scores are equal, as of sentences cut from texts, `packaged` alone.
    """

    rows: IntArray
    columns: dict[str, FloatArray]
    packaged: FloatArray
    order: FloatArray


class CascadeReranker(Loaded):
    """Two-stage reranker: the packaged reranker on all candidates, then a cross-encoder on the best.

    Where none is likely by words, or when it is read, the default encoder compares those candidates with
    the query that no search has, the best 400 or 200, and the packaged reranker judges again.
    The cross-encoder reads the query, in any of some fifty languages, together with the candidates that the
    packaged reranker and the search, or else the encoder, put first, by turns: eight, then four more at a
    time, until four in a row are much less probable than the best. Of each it reads 240 tokens, the titles
    above it where the query needs them (see `with_headings`), and some of the text around it where that is
    known (see `with_text_around`). A logistic regression over both judgements and the cosine, or one
    without it where it is unknown, gives their probabilities, and one over the packaged reranker's alone
    those of the rest, whose order is also the search's. What alone has a code of the query, or a row its
    name, or begins with it, is read first and more probable. Of longer texts `rerank` has it read the
    sentences (`longest_text`). A text of another document can take one of the places that are read; else it
    has as little part in a score as in the packaged reranker's.

    folder: a saved model; default: the one in the package.
    n_read: most candidates to read, at least 1; half as many more where none is likely then; default 24.
    least: reading stops when the last four are all less probable than this share of the most probable one;
        default 0.2; 0 always reads all of them. Where one is likely, 12 are read at most as a rule.
    device: where the network runs, such as "cpu"; default: a GPU if torch can use one.

    The network is loaded at its first use: its model.onnx into ONNX Runtime on a CPU, otherwise its weights
    into torch. Its words are those of the packaged encoder. Raises MissingExtra without torch on a GPU,
    ModelError if a file is damaged.
    """

    name = "cascade"
    reads_around = True
    score_scale: ScoreScale = "probability"
    longest_text = 256
    is_calibrated = True

    def __init__(
        self, folder: str | Path = _FOLDER, *, n_read: int = 24, least: float = 0.2, device: str | None = None
    ) -> None:
        check_number("least", least, least=0, most=1)
        check_number("n_read", n_read, least=1, whole=True)
        self._folder = Path(folder)
        self._config, _ = load_checkpoint(folder, _SETTINGS)
        self.weights_sha256: str = self._config["weights_sha256"]
        self._again = partial(type(self), folder, n_read=n_read, least=least, device=device)
        self._regression = LogisticRegression(self._config["blend"])
        self._by_words = LogisticRegression(self._config["blend_words"])
        self._unread = LogisticRegression(self._config["unread"])
        self._n_read, self._least = n_read, least
        self._device = device
        self._logits: PerProcess[Logits] = PerProcess()

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) probabilities, one per candidate, in their order."""
        if not candidates:
            return np.zeros(0, dtype=np.float32)
        rows, columns, packaged, order = self.shortlist(query, candidates)
        order[rows] = np.nan
        scores = matched(order, self._unread({"packaged": packaged}))
        scores[rows] = self._probabilities(columns)
        return scores

    def _probabilities(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """The (r,) probabilities of what was read."""
        return np.where(np.isnan(columns["dense"]), self._by_words(columns), self._regression(columns))

    def shortlist(self, query: str, candidates: Sequence[Candidate]) -> Shortlist:
        """Judge n > 0 candidates with the packaged reranker, and the best of them with the cross-encoder."""
        candidates = with_names_as_asked(query, candidates)
        headed = with_headings(query, candidates, packaged_reranker().idf_table)
        alone = alone_with_code(query, [one.text for one in headed])
        alone = np.maximum(alone, begins_with_name(query, [one.text for one in candidates]))
        given, judged = candidates, packaged_reranker().score(query, headed)
        found = np.array([candidate.score for candidate in candidates])
        is_found, is_likely = 2 * len(set(found)) > len(found), judged.max() >= _LIKELY
        rows, logits = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.float32)
        unknown = np.flatnonzero(np.isnan(retrieval_scores(candidates, "dense")))
        known: dict[str, FloatArray] = {}
        for most, n_compared in ((self._n_read, _COMPARED), (3 * self._n_read // 2, _COMPARED_LATER)):
            if given is candidates and len(unknown) and not is_likely:
                best = np.argsort(-(judged + alone)[unknown], kind="stable")[: max(self._n_read, n_compared)]
                given, judged = _compared(query, candidates, headed, unknown[best].tolist())
            packaged, dense = log_odds(judged), retrieval_scores(given, "dense")
            order = packaged - np.log2(1 + np.searchsorted(np.sort(-found), -found)) * is_found
            best = _by_turns(packaged + _FIRST * alone, found if is_found else np.nan_to_num(dense, nan=-1.0))
            best = best if given is candidates else best[~np.isnan(dense[best])]
            best = best[in_turns([given[row] for row in best], most)[0]]
            rows = np.append(rows, best[~np.isin(best, rows)])[:most]
            known = known or {"packaged": packaged, "dense": dense, "alone": alone}
            texts = [(given[row], headed[row].text.removesuffix(given[row].text)) for row in rows.tolist()]
            pieces = [Piece(one.text, titles, one.before, one.after) for one, titles in texts]
            columns = self._read(query, pieces, {name: one[rows] for name, one in known.items()}, logits)
            logits = columns["reads"]
            rows, is_likely = rows[: len(logits)], self._probabilities(columns).max() >= _SURE
            if is_likely:
                break
        return Shortlist(rows, columns, packaged, order)

    def _read(
        self, query: str, pieces: Sequence[Piece], known: Mapping[str, FloatArray], logits: FloatArray
    ) -> dict[str, FloatArray]:
        """The columns of the pieces that were read, up to where the last few are below a share of the best.

        known: the other columns of all pieces. logits: of those that were read before, which come first.
        """

        def columns() -> dict[str, FloatArray]:
            return {name: column[: len(logits)] for name, column in known.items()} | {"reads": logits}

        while len(logits) < len(pieces):
            more = pieces[len(logits) :][: _READ_AT_ONCE if len(logits) else _READ_FIRST]
            logits = np.append(logits, self.logits(query, more))
            read = self._probabilities(columns())
            if read[-_READ_AT_ONCE:].max() < self._least * read.max():
                break
        return columns()

    def load_model(self) -> None:
        """Load the networks now, not at the first candidate."""
        packaged_reranker()
        default_encoder()
        self._logits.get(self._load)

    def logits(self, query: str, pieces: Sequence[Piece]) -> FloatArray:
        """Return the cross-encoder's (n,) logits of pieces of text."""
        return self._logits.get(self._load)(query, pieces)

    def _load(self) -> Logits:
        tokenizer = packaged_tokenizer()
        network = read_model_file(self._folder / NETWORK)
        if network_checksum(network, self.weights_sha256) != self._config["network_sha256"]:
            raise ModelError(f"{NETWORK} in {self._folder} is not of its weights; install or train it again")
        if runs_on_onnx(self._device):
            return onnx_logits(self._folder, tokenizer)
        require("torch", extra="torch")
        from precise_rag.rerank.pair_network import torch_logits

        _, tensors = load_checkpoint(self._folder)
        return torch_logits(dequantized(tensors | word_table()), tokenizer, self._device)


def _compared(
    query: str, candidates: Sequence[Candidate], headed: Sequence[Candidate], rows: Sequence[int]
) -> tuple[Sequence[Candidate], FloatArray]:
    """The candidates, with cosines for the first of some rows, and the probabilities of all by them."""
    compared = dict(zip(rows, with_cosines(query, [candidates[row] for row in rows]), strict=False))
    given = [compared.get(row, candidate) for row, candidate in enumerate(candidates)]
    told = [replace(one, scores=other.scores) for one, other in zip(headed, given, strict=True)]
    return given, packaged_reranker().score(query, told)


def _by_turns(*several: Sequence[float] | FloatArray) -> IntArray:
    """The rows of a list, the best by each of several scores in turn. Equal scores say nothing."""
    orders = [np.argsort(-np.asarray(one), kind="stable") for one in several if len(set(one)) > 1]
    orders = orders or [np.arange(len(several[0]))]
    return np.array(list(dict.fromkeys(row for rows in zip(*orders, strict=True) for row in rows)))


@cache
def cascade_reranker(device: str | None = None) -> CascadeReranker:
    """Return the packaged cascade, which stays loaded."""
    return CascadeReranker(device=device).once()
