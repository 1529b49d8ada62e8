"""A reranker adapted to a collection by questions about it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from precise_rag.checks import as_path
from precise_rag.errors import InputError, ModelError
from precise_rag.protocols import Reranker
from precise_rag.rerank.candidate_texts import score_texts
from precise_rag.rerank.features import places
from precise_rag.rerank.levels import Judged, LevelledReranker, calibrated, matched
from precise_rag.rerank.logistic_regression import LogisticRegression, log_odds
from precise_rag.types import Candidate, FloatArray, ScoreScale

FORMAT, VERSION = "precise-rag-adaptation", 1
MARGIN = 1e-4
"""Probabilities nearer to 0 or 1 count as this one."""
_MOST_BYTES = 65_536

COLUMNS = ("base", "search", "own")
"""What an adaptation weighs, see `adaptation_columns`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptation:
    """What was learned from questions about a collection, and what it was learned for.

    weights: of `COLUMNS`, and "offset", in a logistic regression. {"base": 1} changes nothing.
    reranker, weights_sha256: of the reranker. encoder: name of the index's encoder; None without one.
    n_questions: questions it was fitted to.
    gain: what it gains on questions held out, as `adapt` reports it.
    Raises InputError for weights that no fit gives.
    """

    weights: Mapping[str, float]
    reranker: str
    weights_sha256: str
    encoder: str | None
    n_questions: int
    gain: Mapping[str, float]

    def __post_init__(self) -> None:
        for name in ("weights", "gain"):
            values = getattr(self, name)
            if not isinstance(values, Mapping) or not all(map(_is_number, values.values())):
                raise InputError(f"{name} of an adaptation must be finite numbers by name")
        if unknown := self.weights.keys() - {*COLUMNS, "offset"}:
            raise InputError(f"an adaptation has no weight {sorted(unknown)[0]!r}")
        texts = (self.reranker, self.weights_sha256, self.encoder or "")
        if not all(isinstance(text, str) for text in texts) or type(self.n_questions) is not int:
            raise InputError("an adaptation names its reranker, its encoder and its number of questions")

    @property
    def record(self) -> dict[str, Any]:
        """The same as JSON."""
        return asdict(self)

    @classmethod
    def of_record(cls, record: object) -> Self:
        """Return the adaptation of a record. Raises InputError if it is none."""
        names = {field.name for field in fields(cls)}
        if not isinstance(record, Mapping) or record.keys() != names:
            raise InputError(f"an adaptation must have {', '.join(sorted(names))}")
        return cls(**record)

    def save(self, path: str | Path) -> None:
        """Write a JSON file in one step. Raises OSError if it cannot be written."""
        path = as_path("path", path)
        record = {"format": FORMAT, "version": VERSION, **self.record}
        text = json.dumps({**record, "sha256": _sha256(record)}, indent=1) + "\n"
        part = path.with_name(f"{path.name}.part")
        try:
            part.write_text(text, encoding="utf-8")
            os.replace(part, path)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file of `save`. Raises ModelError if it is missing, damaged or of another version."""
        path = as_path("path", path)
        try:
            with path.open("rb") as file:
                record = json.loads(file.read(_MOST_BYTES).decode("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ModelError(f"{path} is no adaptation that can be read ({error}); {_AGAIN}") from error
        if not isinstance(record, dict) or record.pop("format", None) != FORMAT:
            raise ModelError(f"{path} is not an adaptation of precise-rag; {_AGAIN}")
        if (version := record.get("version")) != VERSION:
            raise ModelError(f"{path} has version {version!r}, this one reads {VERSION}; {_AGAIN}")
        digest = record.pop("sha256", None)
        if digest != _sha256({"format": FORMAT, **record}):
            raise ModelError(f"{path} is damaged: its checksum is wrong; {_AGAIN}")
        del record["version"]
        try:
            return cls.of_record(record)
        except InputError as error:
            raise ModelError(f"{path} is damaged ({error}); {_AGAIN}") from error

    def is_for(self, reranker: Reranker) -> bool:
        """Whether it was fitted for this reranker, with the same weights."""
        return (self.reranker, self.weights_sha256) == identity(reranker)

    def check(self, reranker: Reranker, encoder: str | None = None) -> None:
        """Raise ModelError if it was fitted for another reranker, or another encoder if that is known."""
        if not self.is_for(reranker):
            name, _ = identity(reranker)
            kind = "with other weights" if name == self.reranker else f"not for {name!r}"
            raise ModelError(
                f"the adaptation is for the reranker {self.reranker!r}, {kind}; pass that one as reranker "
                f"(AdaptedReranker(yours, adaptation)), or {_AGAIN}"
            )
        if None not in (encoder, self.encoder) and encoder != self.encoder:
            raise ModelError(f"the adaptation is for the encoder {self.encoder!r}, not {encoder!r}; {_AGAIN}")


_AGAIN = "run `precise adapt` again"


def identity(reranker: Reranker) -> tuple[str, str]:
    """Return the name and the sha256 of the weights of a reranker; empty if it does not tell that."""
    return reranker.name, str(getattr(reranker, "weights_sha256", ""))


class AdaptedReranker:
    """A reranker whose probabilities were fitted to questions about a collection.

    Its probability of a candidate is a logistic regression over the reranker's own. Where the questions say
    that the order should be another one, the place that the search gave has a weight, too.

    reranker: the one that the adaptation was fitted for; one that is not calibrated is taken for the order,
        see `LevelledReranker`.
    adaptation: what `adapt` returned, or a file of it.
    encoder: name of the index's encoder, to be compared; default: it is not known.
    Raises ModelError if the adaptation was fitted for another reranker or encoder.
    """

    score_scale: ScoreScale = "probability"
    is_calibrated = True

    def __init__(
        self, reranker: Reranker, adaptation: Adaptation | str | Path, *, encoder: str | None = None
    ) -> None:
        self.reranker = calibrated(reranker)
        self.adaptation = adaptation if isinstance(adaptation, Adaptation) else Adaptation.load(adaptation)
        self.adaptation.check(self.reranker, encoder)
        self.name = self.reranker.name
        self._regression = LogisticRegression(self.adaptation.weights)

    @property
    def longest_text(self) -> int | None:
        """Tokens of the longest text to score whole, as those of the reranker."""
        return getattr(self.reranker, "longest_text", None)

    @property
    def reads_around(self) -> bool:
        """Whether the reranker reads the text around candidates; see `with_text_around`."""
        return getattr(self.reranker, "reads_around", False)

    def score(self, query: str, candidates: Sequence[Candidate]) -> FloatArray:
        """Return (n,) probabilities, one per candidate, in their order."""
        return self.judge(query, candidates).levels if candidates else np.zeros(0, dtype=np.float32)

    def judge(self, query: str, candidates: Sequence[Candidate]) -> Judged:
        """Return the scores of n > 0 candidates by the reranker, and the adapted probabilities."""
        own, columns = adaptation_columns(self.reranker, query, candidates, self.adaptation.weights)
        return Judged(own, self._regression(columns))

    def load_model(self) -> None:
        """Load the models now, not at the first candidate."""
        getattr(self.reranker, "load_model", lambda: None)()


def adaptation_columns(
    reranker: Reranker, query: str, candidates: Sequence[Candidate], wanted: Collection[str]
) -> tuple[npt.NDArray[np.float64], dict[str, FloatArray]]:
    """Return the (n,) scores of n > 0 candidates by a reranker, and the columns that an adaptation weighs.

    wanted: the columns that are needed.

    base: log-odds of the reranker's probabilities. search: minus the places that the search gave, see
    `places`. own: log-odds of the levels in the order of the reranker's own scores.
    """
    if isinstance(reranker, LevelledReranker):
        judged = reranker.judge(query, candidates)
    else:
        levels = score_texts(query, candidates, reranker)
        judged = Judged(np.asarray(levels, dtype=np.float64), levels)
    columns = {"base": log_odds(judged.levels, margin=MARGIN)}
    if "search" in wanted:
        columns["search"] = -places(candidates)
    if "own" in wanted:
        columns["own"] = log_odds(matched(judged.own, judged.levels), margin=MARGIN)
    return judged.own, columns


def _sha256(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode("utf-8")).hexdigest()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
