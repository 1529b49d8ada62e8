"""The values that flow between the stages.

    Document → Span/SentenceTable → Chunk → Candidate → Selection → Excerpt
    Message → Completion → Judgement

All are frozen dataclasses or named tuples. Offsets count Unicode code points, so
`document.text[x.start : x.end] == x.text` holds for every Chunk and Candidate `x`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from precise_rag.checks import check_choice, check_text, items_of, of_kind, shown
from precise_rag.errors import InputError

_THOUGHTS = re.compile(
    r"\A(?:(?:\s*+([<\[◁])((?:\w{1,20}:)?(?:think|thought|reason)\w*|THINK)[>\]▷](?:.*?\1/\2[>\]▷]|.*))++"
    r"|(?:(?!<think>).)*?</think>[ \t]*+\n)\s*+",
    re.S,
)
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Titles = tuple[str, ...]
"""What stands above a piece of text, outermost first; see `precise_rag.titles`."""
Schema = Mapping[str, Any]
"""A JSON schema that a model is asked to reply in."""
ScoreScale = Literal["probability", "logit", "cosine", "bm25", "rank"]
"""What a score means. Higher is better on every scale.

probability: a calibrated probability, in [0, 1].
logit: the log-odds of a probability, unbounded.
cosine: a cosine similarity, in [-1, 1].
bm25: a BM25 score or another non-negative score whose ratios mean something.
rank: a fused or rank-based score; only the order means something.
"""
_SCORE_SCALES: tuple[str, ...] = get_args(ScoreScale)


class Span(NamedTuple):
    """The part `text[start:end]` of a text, in code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Document:
    """A text to index.

    id: unique in its collection.
    text: the text; may be empty.
    metadata: anything you want back with each Chunk and Candidate of the document.
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise InputError(f"Document: id must be a non-empty string, got {shown(self.id)}")
        if not isinstance(self.text, str):
            raise InputError(
                f"Document {self.id!r}: text must be a string, "
                f"got {type(self.text).__name__}; decode it first"
            )
        of_kind(f"Document {self.id!r}: metadata", self.metadata, Mapping)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive whole sentences of one document: the unit that is indexed.

    Its fields are those of the same names of a `Candidate`.
    """

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
    """A piece of a document with its score for one query.

    doc_id: the document's id.
    start, end: offsets in the document's text.
    text: the document's text from start to end.
    score: higher is better.
    score_scale: what the score means (see `ScoreScale`).
    n_tokens: number of tokens, if counted.
    passage: span of the passage or segment that contains the piece, if known.
    scores: scores of earlier stages by name, for instance `{"dense": 0.61, "bm25": 8.4}`.
    metadata: the document's metadata.
    above: the document's title and the headings above the piece, outermost first, if an index knows them.
    before, after: the document's text around the piece, where a reranker reads it; see `with_text_around`.
    Raises InputError if score is not a number or score_scale is unknown.
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
    above: Titles = ()
    before: str = field(default="", repr=False, compare=False)
    after: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("score_scale", self.score_scale, _SCORE_SCALES)
        try:
            score = float(self.score)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"Candidate {self.id}: score must be a number: {error}") from error
        if math.isnan(score):
            raise InputError(
                f"Candidate {self.id}: score must be a number, got NaN; leave out candidates without a score"
            )
        object.__setattr__(self, "score", score)

    @property
    def id(self) -> str:
        """Stable id from the document and the offsets."""
        return f"{self.doc_id}:{self.start}-{self.end}"


UNSCORED = "unscored"
"""Key in `Candidate.scores` of a candidate for which a reranker or store gave no usable score."""
OWN = "own"
"""Key in `Candidate.scores` of the score of a reranker that gives only the order."""
UNRANKED = "unranked"
"""Key in `Candidate.scores` of a candidate for which that reranker gave no usable score: it has our level."""
FIELDS_KEY = "precise_fields"
"""Metadata key of other metadata that a framework shows its models with a text, in one line."""
INSISTENT = "insistent"
"""Key in `Candidate.scores` of a candidate that says what is said again and again; the number of documents
that do. See `precise_rag.sharing`."""


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort candidates by falling score; those without a usable score come last.

    Ties are ordered by document id and place, so the result does not depend on the input order.
    """
    given = items_of("candidates", candidates, Candidate)
    return sorted(given, key=lambda c: (UNSCORED in c.scores, -c.score, c.doc_id, c.start, c.end))


def with_scores(candidates: Iterable[Candidate], scores: Iterable[object]) -> list[Candidate]:
    """Return the candidates with new scores, in the order given.

    scores: one for each candidate. If it is not a finite number, the candidate gets the lowest of the others'
    scores and the entry UNSCORED in its `scores`: it ranks last, and selectors drop it.
    """
    scored = [(c, finite_score(score)) for c, score in zip(candidates, scores, strict=True)]
    known = [(score, c.score_scale) for c, score in scored if score is not None]
    rescored = []
    for candidate, score in scored:
        parts = {name: part for name, part in candidate.scores.items() if name != UNSCORED}
        scale = candidate.score_scale
        if score is None:
            score, scale = min(known, default=(0.0, scale))
            parts[UNSCORED] = 1.0
        rescored.append(replace(candidate, score=score, score_scale=scale, scores=parts))
    return rescored


def finite_score(score: object) -> float | None:
    """Return a number as a float; None for NaN, infinity, text and anything else."""
    if isinstance(score, str | bytes):
        return None
    try:
        number = float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def check_query(query: str) -> str:
    """Return the query. Raises InputError unless it is a string with text."""
    check_text("the query", query)
    if not query.strip():
        raise InputError(f"the query must not be blank, got {query!r}")
    return query


@dataclass(frozen=True, slots=True, eq=False)
class SentenceTable:
    """The sentences of one document with their vectors.

    Every stage reads this table, so each sentence is encoded only once.

    spans: (n, 2) start and end of each sentence; together they cover the text in order.
    paragraphs: (n,) number of each sentence's paragraph, ascending from 0.
    n_tokens: (n,) number of tokens of each sentence.
    vectors: (n, d) rows of unit length; None if the sentences were not encoded.
    encoder: name of the encoder that made the vectors, if it is known.
    """

    doc_id: str
    spans: IntArray
    paragraphs: IntArray
    n_tokens: IntArray
    vectors: FloatArray | None = None
    encoder: str | None = None

    def __len__(self) -> int:
        return len(self.spans)

    def vectors_by(self, encoder: str) -> FloatArray | None:
        """Return the vectors, unless another encoder than that of this name made them."""
        return self.vectors if self.encoder in (None, encoder) else None


class Stretch(NamedTuple):
    """Consecutive sentences of one document.

    text: the document's text from the start of the first sentence to the end of the last one.
    sentences: in order, with no other sentence between them; their scores mean nothing.
    """

    text: str
    sentences: tuple[Candidate, ...]


class Decision(NamedTuple):
    """What a selector or filter decided about one candidate.

    rank: the candidate's rank, from 1.
    reason: why it was kept or dropped, in words.
    """

    rank: int
    candidate: Candidate
    kept: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Excerpt(Candidate):
    """A slice of one document that is sent: kept sentences that stand together, and what is between them.

    `text` is exactly the document's text from `start` to `end`. The score is that of its best sentence.

    sentences: the decisions that put it together, in the order of the text: each kept sentence with its own
        place, score and reason. A sentence between them that only fills a short hole has none.
    """

    sentences: tuple[Decision, ...] = field(default=(), hash=False)

    @property
    def best(self) -> Decision:
        """The decision on its best sentence."""
        return min(self.sentences, key=lambda decision: decision.rank)

    @property
    def reason(self) -> str:
        """Why it is sent: the reason of its best sentence, and how many more came along."""
        more = len(self.sentences) - 1
        return self.best.reason + (f"; {more} more sentence{'s' * (more > 1)} came along" if more else "")


Verdict = tuple[Candidate, bool, str]
"""A candidate, whether it is kept, and why."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The result of a selector or filter: one decision per candidate, best first.

    stretches: the text around the candidates, if a stage has read it. `precise_rag.excerpts` cuts from it.
    """

    decisions: tuple[Decision, ...] = ()
    stretches: tuple[Stretch, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Selection:
        """Build a selection from (candidate, kept, reason), best first; ranks count from 1."""
        return cls(tuple(Decision(rank, *verdict) for rank, verdict in enumerate(verdicts, start=1)))

    @classmethod
    def keep_all(cls, candidates: Iterable[Candidate], reason: str = "") -> Selection:
        """Build a selection that keeps all candidates in their order, for a reason or an excerpt's own."""
        return cls.of((one, True, reason or getattr(one, "reason", "")) for one in candidates)

    def then(self, later: Selection, *, may_return: bool = False) -> Selection:
        """Combine this selection with that of a later stage.

        later: the selection made from this one's kept candidates, and from others that it added to them.
        Returns the later decisions and this selection's drops, in score order, other scales last. What was
        dropped before and added again stays dropped, unless it may return. The stretches are the later ones,
        if there are any.
        """
        kept = {candidate.id for candidate in self.kept}
        added = {decision.candidate.id for decision in later.decisions if may_return}
        drops = [one for one in self.decisions if not one.kept and one.candidate.id not in added]
        gone = {decision.candidate.id for decision in drops} - kept
        decisions = [*(d for d in later.decisions if d.candidate.id not in gone), *drops]
        scales = {decision.candidate.score_scale for decision in later.decisions}
        decisions.sort(key=lambda one: (one.candidate.score_scale not in scales, -one.candidate.score))
        joined = Selection.of((d.candidate, d.kept, d.reason) for d in decisions)
        return replace(joined, stretches=later.stretches or self.stretches)

    def dropping(self, reasons: Mapping[str, str]) -> Selection:
        """Return this selection without some of the kept candidates. reasons: why, by candidate id."""
        decisions = (
            d._replace(kept=False, reason=reasons[d.candidate.id])
            if d.kept and d.candidate.id in reasons
            else d
            for d in self.decisions
        )
        return replace(self, decisions=tuple(decisions))

    @property
    def kept(self) -> tuple[Candidate, ...]:
        """The kept candidates in score order."""
        return tuple(d.candidate for d in self.decisions if d.kept)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reason of each decision, in rank order."""
        return tuple(d.reason for d in self.decisions)


class Message(NamedTuple):
    """One turn of a chat prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


CutOff = Literal["", "length", "content_filter"]
"""Why a reply ends early; empty if it is whole."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply of a language model to one call.

    input_tokens, output_tokens: tokens of the prompt and of the reply.
    usage_estimated: True if the server reported no token counts and they were estimated.
    cut_off: why the reply ends early: "length" or "content_filter"; empty if it is whole, or if the server
        did not say.
    """

    text: str
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    usage_estimated: bool = False
    cut_off: CutOff = ""

    @property
    def spoken(self) -> str:
        """The text without the thoughts that some reasoning models write before it."""
        return _THOUGHTS.sub("", self.text)


@dataclass(frozen=True, slots=True)
class Judgement:
    """An LLM's judgement of an answer (SAGE, section VI-A).

    score: 1 to 10; None unless status is "parsed".
    adjustment: -1 for less context, 1 for more, 0 for the same.
    status: "parsed"; "unparsed" if the reply could not be read; "failed" if the call failed.
    raw: the LLM's reply.
    """

    score: int | None
    adjustment: Literal[-1, 0, 1]
    status: Literal["parsed", "unparsed", "failed"]
    raw: str = ""
