"""The stages of a pipeline: what each of them is, how it is made, and those between search and selection.

A new stage between search and selection is a name in `Stages`, its method in `METHODS`, and a function that
makes a Step from it, in `STEPS`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypedDict, runtime_checkable

from precise_rag.checks import of_kind
from precise_rag.errors import InputError
from precise_rag.feedback import FeedbackController
from precise_rag.llm.session import Conversation, Session, Work
from precise_rag.presets import Preset
from precise_rag.prompts import Wording
from precise_rag.protocols import LLM, Neighbours
from precise_rag.rerank import calibrated, load_reranker, rerank
from precise_rag.sharing import share_places
from precise_rag.types import UNRANKED, Candidate, Selection, best_first

Candidates = Sequence[Candidate]
Stage = Any
"""A stage of the pipeline: "default" (the preset's), None (left out), or your own object."""


class Stages(TypedDict, total=False):
    """The stages of a pipeline, each a Stage; default: "default". `PreciseRAG` says what they are."""

    rewriter: Stage
    reranker: Stage
    redundancy: Stage
    relevance: Stage
    evidence: Stage
    selector: Stage
    feedback: Stage


METHODS: Mapping[str, str] = {
    "rewriter": "queries",
    "reranker": "score",
    "redundancy": "filter",
    "relevance": "filter",
    "evidence": "grow",
    "selector": "select",
    "feedback": "next_step",
}
"""The method that your own object must have, by the name of the stage; see `precise_rag.protocols`."""
_ELSEWHERE = {
    "_embed": "encoder=, in LangChain embeddings= and in LlamaIndex embed_model=, where the index is built",
    "_filter": 'with_filter(), in LangChain search_kwargs={"filter": …} and in LlamaIndex filters=',
    r"_k\Z": "with_k(), in LangChain k= and in LlamaIndex similarity_top_k=",
}
"""What arguments of other libraries are here, by a pattern of their names."""


@runtime_checkable
class AsksModel(Protocol):
    """A stage that asks a language model in the session of the question, such as `RelevanceFilter`.

    llm: its own model; None: that of the pipeline.
    steps: the stage as a conversation. It takes what the stage's method takes, the session and the wording.
    """

    llm: LLM | None
    steps: Callable[..., Conversation[Any]]


def make_stages(preset: Preset, index: Any, given: Mapping[str, Stage]) -> dict[str, Any]:
    """Return the stages by their names in `Stages`; None for those that are left out.

    index: what is searched, for the stages of the preset.
    Raises InputError for a stage that is none, and for the name of none.
    """
    for name in given:
        if name not in METHODS:
            ours = (f"say it by {one}" for part, one in _ELSEWHERE.items() if re.search(part, f"_{name}"))
            told = next(ours, f"its stages are {', '.join(METHODS)}")
            raise InputError(f"PreciseRAG has no argument {name!r}; {told}")
    made: dict[str, Any] = {}
    for name, method in METHODS.items():
        part = given.get(name, "default")
        if isinstance(part, str) and part == "default":
            make = getattr(preset, name)
            part = None if make is None else make(index)
        elif name == "reranker" and part is not None:
            loaded = load_reranker(part, score_scale=preset.score_scale)
            part = calibrated(loaded) if preset.calibrated else loaded
        elif part is not None and name == "feedback":
            of_kind(name, part, FeedbackController)
        elif part is not None and (isinstance(part, type) or not callable(getattr(part, method, None))):
            raise InputError(
                f'{name} must be "default", None or an object with {method}(), got {type(part).__name__}'
            )
        made[name] = part
    return made


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Selector of a pipeline without one: it keeps all candidates, until feedback asks for less."""

    def select(self, candidates: Iterable[Candidate], *, query: str = "", step: int = 0) -> Selection:
        """Keep all, best first; with a negative `step` of feedback, so many fewer, but at least one."""
        ranked = best_first(candidates)
        n_kept = max(1, len(ranked) + min(0, step))
        reasons = "the judge asks for less", "selection is off"
        return Selection.of((one, row < n_kept, reasons[row < n_kept]) for row, one in enumerate(ranked))


class Step(NamedTuple):
    """A stage between search and selection, as a conversation about the candidates.

    name, settings: for the trace.
    steps: decides on the candidates of a query.
    """

    name: str
    settings: Mapping[str, Any]
    steps: Callable[[str, Candidates, Session, Wording], Conversation[Selection]]


def reranking(part: Any, around: Neighbours | None) -> Step:
    """Give each candidate a better score. around: knows the sentences around candidates."""

    def ranked(query: str, candidates: Candidates) -> Selection:
        missing = f"{part.name} gave it no usable score: it has our probability"
        scored = rerank(query, candidates, part, around)
        return Selection.of((c, True, missing if UNRANKED in c.scores else "candidate") for c in scored)

    return _working(ranked, "rerank", reranker=part.name)


def limit(n_candidates: int) -> Step:
    """Keep the best sentences of what was found, as many as a search for sentences returns."""
    return _working(
        lambda query, candidates: share_places(query, candidates, n_candidates).selection,
        "sentences",
        n_candidates=n_candidates,
    )


def redundancy(part: Any, around: Neighbours | None) -> Step:
    """Drop candidates that repeat a better one."""
    settings = {name: getattr(part, name) for name in ("similarity_threshold",) if hasattr(part, name)}
    return _working(lambda query, candidates: part.filter(candidates), "redundancy", **settings)


def relevance(part: Any, around: Neighbours | None) -> Step:
    """Drop candidates that are not relevant."""
    if isinstance(part, AsksModel):
        return Step("relevance", {}, part.steps)
    return _working(part.filter, "relevance", arun=getattr(part, "afilter", None))


STEPS: Mapping[str, Callable[[Any, Neighbours | None], Step]] = {
    "reranker": reranking,
    "redundancy": redundancy,
    "relevance": relevance,
    "evidence": lambda part, around: _working(part.grow, "evidence"),
}
"""How the stages between search and selection become steps: in their order, by their names in `Stages`.

Each takes the stage, and what knows the sentences around candidates."""


def _working(
    run: Callable[[str, Candidates], Any],
    name: str,
    *,
    arun: Callable[[str, Candidates], Any] | None = None,
    **settings: Any,
) -> Step:
    """A stage that asks no model of ours: a function of the query and the candidates."""

    def steps(query: str, candidates: Candidates, session: Session, wording: Wording) -> Conversation[Any]:
        outcome = yield Work(partial(run, query, candidates), arun and partial(arun, query, candidates))
        return of_kind(f"what {name} returns", outcome, Selection)

    return Step(name, settings, steps)
