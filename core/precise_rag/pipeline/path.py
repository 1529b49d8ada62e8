"""From a question to the selection: what is asked, an index, and the order of the stages that follow it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Any, Self, TypedDict

from precise_rag._processes import PerProcess, side_by_side
from precise_rag.checks import check_number, items_of, of_kind
from precise_rag.errors import InputError
from precise_rag.evidence import N_FOUND, FoundTexts
from precise_rag.excerpts import Form
from precise_rag.llm.session import Conversation, Session, Work
from precise_rag.pipeline.searching import VariedSearch, method
from precise_rag.pipeline.stages import STEPS, AsksModel, Step, limit
from precise_rag.prompts import Wording
from precise_rag.protocols import (
    CandidateFilter,
    Grower,
    Neighbours,
    RepetitionFilter,
    Reranker,
    Rewriter,
    Selector,
    SentenceGrower,
    Source,
)
from precise_rag.rewriting import merge_searches, read_history
from precise_rag.selection import GradientSelector
from precise_rag.sharing import Places, Said, share_places, with_insistent
from precise_rag.trace import Trace
from precise_rag.types import Candidate, FloatArray, Selection, best_first, check_query

_AROUND = 2
"""Sentences on each side of a candidate whose text is read for excerpts, where no growth has read more."""


class SearchArguments(TypedDict, total=False):
    """The further arguments of `PreciseRAG.retrieve`; see there."""

    history: Iterable[Any]
    filter: Any
    vector: FloatArray | None
    candidates: Iterable[Candidate] | None
    trace: Trace | None
    max_tokens: int | None
    form: Form | None


class AnswerArguments(SearchArguments, total=False):
    """The further arguments of `PreciseRAG.answer`; see there."""

    options: Sequence[str]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, with the arguments of `PreciseRAG.retrieve` and `PreciseRAG.answer`.

    Raises InputError for a blank text, a history that cannot be read, and options that are blank or repeated.
    """

    text: str
    history: Any = ()
    filter: Any = None
    vector: FloatArray | None = None
    candidates: Iterable[Candidate] | None = None
    trace: Trace | None = None
    max_tokens: int | None = None
    form: Form | None = None
    options: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_query(self.text)
        check_number("max_tokens", self.max_tokens, least=1, whole=True, none="no limit")
        object.__setattr__(self, "history", read_history(self.history))
        options = tuple(items_of("options", self.options, str))
        if len({option.strip() for option in options} - {""}) < len(options):
            raise InputError(f"options must differ, and none may be blank, got {options!r}")
        object.__setattr__(self, "options", options)


@dataclass(frozen=True, kw_only=True)
class RetrievalPath:
    """What retrieves: an index and the stages that follow it, of which None is left out.

    index: what is searched; None if every question comes with its candidates.
    n_candidates: candidates to retrieve, at least 1.
    reranks_last: whether the reranker scores what the filters leave, as in ChunkRAG.
    """

    index: Source | None
    n_candidates: int
    selector: Selector
    rewriter: Rewriter | None = None
    reranker: Reranker | None = None
    redundancy: RepetitionFilter | None = None
    relevance: CandidateFilter | None = None
    evidence: Grower | None = None
    reranks_last: bool = False
    _loaded: PerProcess[bool] = field(default_factory=PerProcess, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_number("n_candidates", self.n_candidates, least=1, whole=True)

    def with_k(self, k: int) -> Self:
        """Return a path that keeps exactly the best `k`, if there are as many. Everything else is shared."""
        check_number("k", k, least=1, whole=True)
        selector = GradientSelector(min_k=k, max_k=k, ratio=0.0, assume_ratio=True)
        return replace(self, selector=selector, n_candidates=max(self.n_candidates, k))

    @property
    def settings(self) -> dict[str, Any]:
        """The stages as a trace names them."""
        named = {} if self.reranker is None else {"reranker": self.reranker.name}
        selector = self.selector_settings
        return {"selector": selector.get("selector", selector), **named}

    @property
    def selector_settings(self) -> dict[str, Any]:
        """The numbers that the selector was set to; its name if they cannot be known."""
        own: Any = fields(self.selector) if is_dataclass(self.selector) else ()
        settings = {one.name: getattr(self.selector, one.name) for one in own}
        numbers = {name: value for name, value in settings.items() if type(value) in (int, float)}
        return numbers or {"selector": type(self.selector).__name__}

    def rank(self, search: Question, session: Session, wording: Wording) -> Conversation[Selection]:
        """Run the stages before the selection: it keeps what there is to select from."""
        query = search.text
        places = Places()
        if search.candidates is None:
            queries = yield from self._queries(query, session, wording)
            places = yield from self._search(queries, search, session)
            candidates: Sequence[Candidate] = places.selection.kept
        else:
            candidates = best_first(search.candidates)
        grower = self.evidence
        is_of_texts = isinstance(grower, SentenceGrower) and grower.source is None and self._reranks_first
        texts = FoundTexts(query, candidates) if is_of_texts else None
        ranked = Selection.keep_all(candidates if texts is None else texts.sentences.kept)
        may_return = texts is not None and self.redundancy is None is self.relevance
        for stage in self._steps(texts):
            with session.trace.stage(stage.name, **stage.settings) as record:
                record.outcome = later = yield from stage.steps(query, ranked.kept, session, wording)
            ranked = ranked.then(later, may_return=may_return)
            if stage.name == "rerank" and texts is None:
                ranked = _with_equals(ranked, places)
        ranked = _with_repeats(ranked, places) if texts is None else texts.sentences.then(ranked)
        if not ranked.stretches and isinstance(self.index, Neighbours):
            around = yield Work(partial(self.index.neighbours, ranked.kept, _AROUND))
            ranked = replace(ranked, stretches=tuple(around))
        return ranked

    def _queries(self, query: str, session: Session, wording: Wording) -> Conversation[Any]:
        if self.rewriter is None:
            return (query,)
        if isinstance(self.rewriter, AsksModel):
            return (yield from self.rewriter.steps(query, session, wording))
        queries = yield Work(partial(self.rewriter.queries, query), method(self.rewriter, "aqueries", query))
        return tuple(items_of("the rewriter's queries", queries, str))

    def _search(self, queries: Sequence[str], search: Question, session: Session) -> Conversation[Places]:
        """Return the candidates that are reranked, and why others are not; without a reranker, all."""
        if self.index is None:
            raise InputError("there is no index to search; pass candidates=, or an index to the constructor")
        knows_sentences = self.evidence is not None and isinstance(self.index, Neighbours)
        returns = "sentence" if knows_sentences else None
        searches = []
        yield Work(self._load_models)  # outside of the time of the search
        with session.trace.stage("search", n_candidates=self.n_candidates, queries=len(queries)) as stage:
            for one in queries:
                vector = search.vector if one == search.text else None
                asked = {"filter": search.filter, "returns": returns, "vector": vector}
                arguments = {name: value for name, value in asked.items() if value is not None}
                source = VariedSearch(self.index, self.n_candidates, arguments, self._reranks_first)
                searches.append((yield from source.steps(one)))
            candidates = merge_searches(one.candidates for one in searches)
            places = Places(Selection.keep_all(candidates, "candidate"))
            if self._reranks_first:
                n_places = sum(one.n_places for one in searches)
                places = share_places(search.text, with_insistent(search.text, candidates), n_places)
            stage.outcome = places.selection
        return places

    @property
    def _reranks_first(self) -> bool:
        return self.reranker is not None and not self.reranks_last

    def _load_models(self) -> None:
        """Load the models of the stages side by side, the first time; what fails fails again at its use."""
        growing = getattr(self.evidence, "model", None)
        parts = (getattr(self.index, "encoder", None), self.reranker, growing)
        self._loaded.get(lambda: bool(side_by_side(*[partial(_load, part) for part in parts])))

    def _steps(self, texts: FoundTexts | None) -> list[Step]:
        """The stages between search and selection, in their order. texts: what the search found, if split."""
        parts = {name: getattr(self, name) for name in STEPS}
        if texts is not None:
            parts["evidence"] = parts["evidence"].over(texts)
        names = [name for name in STEPS if parts[name] is not None]
        if self.reranks_last:
            names.sort(key=lambda name: name == "reranker")
        around = texts or (self.index if isinstance(self.index, Neighbours) else None)
        steps = [STEPS[name](parts[name], around) for name in names]
        return steps if texts is None else [steps[0], limit(max(N_FOUND, self.n_candidates)), *steps[1:]]

    def select(self, query: str, ranked: Selection, step: int = 0) -> Selection:
        """Return the selection from what is ranked, at a step of feedback; see `Selector`."""
        selected = self.selector.select(ranked.kept, query=query, step=step)
        return ranked.then(of_kind("what the selector returns", selected, Selection))


def _with_equals(ranked: Selection, places: Places) -> Selection:
    """Add what equals a ranked candidate and is said of something else, with its score; see `Said`."""
    said = Said()
    for candidate in ranked.kept:
        said.before(candidate)
    equal = [one for one, _ in _repeating(ranked.kept, places) if not said.before(one)]
    return ranked.then(Selection.keep_all(best_first([*ranked.kept, *equal]))) if equal else ranked


def _with_repeats(ranked: Selection, places: Places) -> Selection:
    """Add what was not ranked because it repeats a ranked candidate; it has the score of that one."""
    known = {decision.candidate.id: decision.candidate for decision in ranked.decisions}
    repeats = _repeating(known.values(), places)  # as it is if it came along with another one
    return Selection.of((one, False, why) for one, why in repeats if one.id not in known).then(ranked)


def _repeating(scored: Iterable[Candidate], places: Places) -> Iterator[tuple[Candidate, str]]:
    """What repeats one of these candidates, with the score of that one, and why it was not ranked."""
    by_id = {candidate.id: candidate for candidate in scored}
    for _, candidate, _, reason in places.selection.decisions:
        if same := by_id.get(places.repeats.get(candidate.id, "")):
            yield replace(candidate, score=same.score, score_scale=same.score_scale), reason


def _load(part: Any) -> None:
    """Load the model of a stage, if it has one, and those of the rerankers in it."""
    with suppress(Exception):
        getattr(part, "load_model", lambda: None)()
    for name in {"reranker", "order", "levels"} & getattr(part, "__dict__", {}).keys():
        _load(getattr(part, name))
