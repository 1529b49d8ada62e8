"""The values that flow between the stages.

    Document → Span/SentenceTable → Chunk → Candidate → Selection
    Message → Completion → Judgement

All are frozen. Offsets count Unicode code points of the document's text, so
`document.text[x.start : x.end] == x.text` holds for every Chunk and Candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

ScoreScale = Literal["probability", "logit", "cosine", "bm25", "rank"]
"""What a score means: a calibrated `probability` in [0, 1]; an unbounded `logit`; a `cosine` in
[-1, 1]; an unbounded non-negative `bm25` (or any other non-negative ratio scale); or a fused or
`rank`-derived number of which only the order means anything."""

SCORE_SCALES: tuple[str, ...] = get_args(ScoreScale)


class Span(NamedTuple):
    """`text[start:end]` of some text, in code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Document:
    """A text with an id that is unique in its collection, and the caller's own metadata."""

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise InputError(f"Document id must be a non-empty string, got {self.id!r}")
        if not isinstance(self.text, str):
            raise InputError(
                f"Document {self.id!r}: text must be a string, "
                f"got {type(self.text).__name__}; decode it first"
            )


@dataclass(frozen=True, slots=True)
class Chunk:
    """The indexed unit: consecutive whole sentences of one document."""

    doc_id: str
    start: int
    end: int
    text: str
    n_tokens: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """Stable id from the document and the offsets."""
        return f"{self.doc_id}:{self.start}-{self.end}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece of a document with its score for one query. Higher is better.

    `scores` keeps what earlier stages gave (for instance `{"dense": 0.61, "bm25": 8.4}`);
    `passage` is the span of the passage or segment that the piece belongs to.
    """

    doc_id: str
    start: int
    end: int
    text: str
    score: float
    score_scale: ScoreScale
    n_tokens: int | None = None
    passage: Span | None = None
    scores: Mapping[str, float] = field(default_factory=dict, hash=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.score_scale not in SCORE_SCALES:
            raise InputError(
                f"score_scale is {self.score_scale!r}; expected one of {', '.join(SCORE_SCALES)}"
            )
        score = float(self.score)
        if math.isnan(score):
            raise InputError(f"Candidate {self.id}: score is NaN; a missing score must not become a number")
        object.__setattr__(self, "score", score)

    @property
    def id(self) -> str:
        """Stable id from the document and the offsets."""
        return f"{self.doc_id}:{self.start}-{self.end}"


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort candidates by falling score.

    Ties are ordered by document id and place, so the result does not depend on the input order.
    """
    return sorted(candidates, key=lambda c: (-c.score, c.doc_id, c.start, c.end))


@dataclass(frozen=True, slots=True, eq=False)
class SentenceTable:
    """The sentences of one document, each encoded once (DESIGN: embed each sentence once).

    spans: (n, 2) int64, tiling the text in order. paragraphs: (n,) int64, the index of each
    sentence's paragraph, ascending from 0. n_tokens: (n,) int64 by the encoder's tokenizer.
    vectors: (n, d) float32 of unit length, or None where no encoder took part.
    """

    doc_id: str
    spans: IntArray
    paragraphs: IntArray
    n_tokens: IntArray
    vectors: FloatArray | None = None

    def __post_init__(self) -> None:
        n = len(self.spans)
        if self.spans.shape != (n, 2) or self.paragraphs.shape != (n,) or self.n_tokens.shape != (n,):
            raise InputError(
                f"SentenceTable {self.doc_id!r}: spans {self.spans.shape}, "
                f"paragraphs {self.paragraphs.shape} and n_tokens {self.n_tokens.shape} "
                "must be (n, 2), (n,) and (n,)"
            )
        if self.vectors is not None and (self.vectors.ndim != 2 or len(self.vectors) != n):
            raise InputError(
                f"SentenceTable {self.doc_id!r}: vectors {self.vectors.shape} must be ({n}, d), "
                "one row a sentence"
            )

    def __len__(self) -> int:
        return len(self.spans)


class Decision(NamedTuple):
    """What a selector or filter did with one candidate, and why, in words."""

    rank: int
    candidate: Candidate
    kept: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The outcome of a selector or filter: one decision per candidate, best first."""

    decisions: tuple[Decision, ...] = ()

    @classmethod
    def of(cls, verdicts: Iterable[tuple[Candidate, bool, str]]) -> Selection:
        """Build a selection from (candidate, kept, reason), best first; ranks count from 1."""
        return cls(tuple(Decision(rank, *verdict) for rank, verdict in enumerate(verdicts, start=1)))

    @classmethod
    def keep_all(cls, candidates: Iterable[Candidate], reason: str = "") -> Selection:
        """Build a selection that keeps every candidate, in the order given, for one reason."""
        return cls.of((candidate, True, reason) for candidate in candidates)

    def then(self, later: Selection) -> Selection:
        """Combine with a later stage, which decided on what this one kept.

        Returns the later stage's decisions and what this one had dropped, in score order.
        """
        decisions = [*later.decisions, *(decision for decision in self.decisions if not decision.kept)]
        decisions.sort(key=lambda decision: -decision.candidate.score)
        return Selection.of((d.candidate, d.kept, d.reason) for d in decisions)

    @property
    def kept(self) -> tuple[Candidate, ...]:
        """The kept candidates in score order."""
        return tuple(d.candidate for d in self.decisions if d.kept)

    @property
    def dropped(self) -> tuple[Candidate, ...]:
        """The dropped candidates in score order."""
        return tuple(d.candidate for d in self.decisions if not d.kept)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reason for each rank, kept or dropped."""
        return tuple(d.reason for d in self.decisions)


class Message(NamedTuple):
    """One turn of a chat prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model gave back for one call.

    Token counts come from the server's usage field; `usage_estimated` is True where the server
    gave none and they were counted here.
    """

    text: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    usage_estimated: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """An LLM's opinion of an answer (SAGE, section VI-A).

    score: 1-10, or None unless status is "parsed". adjustment: -1 less context, +1 more, 0 as is.
    """

    score: int | None
    adjustment: Literal[-1, 0, 1]
    status: Literal["parsed", "unparsed", "failed"]
    raw: str = ""
