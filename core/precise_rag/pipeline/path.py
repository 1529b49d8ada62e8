"""The stages of a pipeline, and their order from a question to the selection."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Self

from precise_rag._pickling import Portable
from precise_rag._processes import PerProcess, side_by_side
from precise_rag.checks import check_number
from precise_rag.errors import InputError
from precise_rag.evidence import EvidenceGrower, FoundTexts
from precise_rag.feedback import FeedbackController
from precise_rag.filtering import RelevanceFilter
from precise_rag.llm.session import Conversation, Session, Work
from precise_rag.pipeline.question import Search
from precise_rag.pipeline.searching import FairSearch, method
from precise_rag.pipeline.stages import METHODS, STAGES, Stage, limit
from precise_rag.presets import PresetName, load_preset
from precise_rag.prompts import Wording
from precise_rag.protocols import Neighbours, Source
from precise_rag.rerank import load_reranker
from precise_rag.rewriting import QueryRewriter, merge_searches
from precise_rag.selection import GradientSelector, KeepAll, ProbabilitySelector
from precise_rag.sharing import Places, share_places, with_insistent
from precise_rag.types import Candidate, Selection, best_first

Part = Any
"""A stage of the pipeline: "default" (the preset's), None (left out), or your own object."""


class RetrievalPath(Portable):
    """What retrieves: an index and the stages that follow it. `PreciseRAG` says what they are.

    given: a Part for each name of METHODS.
    Raises InputError for a stage that is none.
    """

    rewriter: Any
    reranker: Any
    redundancy: Any
    relevance: Any
    evidence: Any
    selector: Any
    feedback: Any
    wording: Wording

    def __init__(
        self, index: Source | None, preset: PresetName, n_candidates: int | None, **given: Part
    ) -> None:
        if index is not None and not hasattr(index, "search"):
            raise InputError(
                f"index must be an index or an object with search(query, top_k), got {type(index).__name__}"
            )
        chosen = load_preset(preset)
        self.index = index
        self.preset = preset
        self._loaded: PerProcess[bool] = PerProcess()
        self.n_candidates = chosen.n_candidates if n_candidates is None else n_candidates
        check_number("n_candidates", self.n_candidates, least=1, whole=True)
        for name in METHODS:
            setattr(self, name, self._part(name, given[name]))
        self.selector = self.selector or KeepAll()
        self.feedback = self.feedback or FeedbackController(max_rounds=0)

    def _part(self, name: str, given: Part) -> Any:
        """Return the stage that a Part names."""
        chosen, method = load_preset(self.preset), METHODS[name]
        if isinstance(given, str) and given == "default":
            made_from = self.index if name == "evidence" else getattr(self.index, "encoder", None)
            return getattr(chosen, name)(made_from)
        if name == "reranker" and given is not None:
            return load_reranker(given, score_scale=chosen.score_scale)
        if given is not None and not hasattr(given, method.split("(")[0]):
            raise InputError(
                f'{name} must be "default", None or an object with {method}, got {type(given).__name__}'
            )
        return given

    def with_k(self, k: int | None) -> Self:
        """Return a pipeline that keeps exactly the best `k`, if there are as many; None: this one.

        Everything but the selector is shared.
        """
        if k is None:
            return self
        return self._with(selector=GradientSelector(min_k=k, max_k=k, ratio=0.0, assume_ratio=True))

    def _with(self, **parts: Any) -> Self:
        other = object.__new__(type(self))
        other.__dict__ |= {**vars(self), **parts}
        return other

    @property
    def _settings(self) -> dict[str, Any]:
        """The stages as a trace names them."""
        chosen = self.selector
        is_ours = isinstance(chosen, GradientSelector | KeepAll | ProbabilitySelector)
        named = {} if self.reranker is None else {"reranker": self.reranker.name}
        selector = asdict(chosen) if is_ours else type(chosen).__name__
        return {"preset": self.preset, "selector": selector, **named}

    @property
    def _limits(self) -> dict[str, Any]:
        """What the selector was set to, as the trace of its stage says it."""
        given = self._settings["selector"]
        if not isinstance(given, dict):
            return {"selector": given}
        return {name: value for name, value in given.items() if type(value) in (int, float)}

    @property
    def _controller(self) -> FeedbackController:
        """The rules of the feedback loop, from the selector's `min_k` on."""
        rules: FeedbackController = self.feedback
        return replace(rules, min_k=getattr(self.selector, "min_k", rules.min_k))

    def _rank(self, search: Search, session: Session, *, ask_models: bool = True) -> Conversation[Selection]:
        """Run the stages before the selection: it keeps what there is to select from."""
        query = search.text
        places = Places()
        if search.candidates is None:
            queries = (yield from self._queries(query, session)) if ask_models else (query,)
            places = yield from self._search(queries, search, session)
            found: Sequence[Candidate] = places.selection.kept
        else:
            found = best_first(search.candidates)
        texts = FoundTexts(query, found) if self._splits_texts else None
        ranked = Selection.keep_all(found) if texts is None else texts.sentences
        for stage in self._stages(ask_models, texts):
            with session.trace.stage(stage.name, **stage.settings) as record:
                outcome = yield from stage.steps(query, ranked.kept, session, self.wording)
                record.outcome = outcome
            later = outcome if isinstance(outcome, Selection) else Selection.keep_all(outcome)
            ranked = ranked.then(later)
        return ranked if texts is not None else _with_repeats(ranked, places)

    def _queries(self, query: str, session: Session) -> Conversation[Sequence[str]]:
        if self.rewriter is None:
            return (query,)
        if isinstance(self.rewriter, QueryRewriter):
            return (yield from self.rewriter.steps(query, session, self.wording))
        arun = method(self.rewriter, "aqueries", query)
        queries: Sequence[str] = yield Work(partial(self.rewriter.queries, query), arun)
        return queries

    def _search(self, queries: Sequence[str], search: Search, session: Session) -> Conversation[Places]:
        """Return the candidates that are reranked, and why others are not; without a reranker, all."""
        if self.index is None:
            raise InputError("there is no index to search; pass candidates=, or an index to the constructor")
        knows_sentences = self.evidence is not None and isinstance(self.index, Neighbours)
        returns = "sentence" if knows_sentences else None
        searches = []
        yield Work(self._load_models)  # outside of the time of the search
        with session.trace.stage("search", n_candidates=self.n_candidates, queries=len(queries)) as stage:
            for one in queries:
                asked = {"filter": search.filter, "returns": returns}
                asked["vector"] = search.vector if one == search.text else None
                given = {name: value for name, value in asked.items() if value is not None}
                source = FairSearch(self.index, self.n_candidates, given, self.reranker is not None)
                searches.append((yield from source.steps(one)))
            found = merge_searches(one.candidates for one in searches)
            places = Places(Selection.keep_all(found, "candidate"))
            if self.reranker is not None:
                n_places = sum(one.n_places for one in searches)
                places = share_places(search.text, with_insistent(search.text, found), n_places)
            stage.outcome = places.selection
        return places

    def _load_models(self) -> None:
        """Load the models of the stages side by side, the first time; what fails fails again at its use."""
        parts = (getattr(self.index, "encoder", None), self.reranker, getattr(self.evidence, "model", None))
        self._loaded.get(lambda: bool(side_by_side(*[partial(_load, part) for part in parts])))

    @property
    def _splits_texts(self) -> bool:
        """Whether what a search finds are texts of any length, of which sentences are reranked and grown."""
        grower = self.evidence
        return isinstance(grower, EvidenceGrower) and grower.source is None and self.reranker is not None

    def _stages(self, ask_models: bool, texts: FoundTexts | None) -> list[Stage]:
        """The stages between search and selection, in their order. texts: what the search found, if split."""
        parts = {name: getattr(self, name) for name in STAGES}
        if not ask_models and isinstance(self.relevance, RelevanceFilter):
            parts["relevance"] = None
        if texts is not None:
            parts["evidence"] = self.evidence.over(texts)
        stages = [make(parts[name]) for name, make in STAGES.items() if parts[name] is not None]
        return stages if texts is None else [stages[0], limit(self.n_candidates), *stages[1:]]

    def _select(self, query: str, ranked: Selection, session: Session) -> Selection:
        with session.trace.stage("selection", **self._limits) as stage:
            stage.outcome = selected = self._select_at(query, ranked, self._controller.min_k)
        return selected

    def _select_at(self, query: str, ranked: Selection, min_k: int) -> Selection:
        """The selection at `min_k`, which the feedback loop changes."""
        if isinstance(self.selector, ProbabilitySelector):
            return ranked.then(self.selector.select_at(ranked.kept, min_k, query))
        if hasattr(self.selector, "select_at"):
            return ranked.then(self.selector.select_at(ranked.kept, min_k))
        return ranked.then(self.selector.select(ranked.kept))


def _with_repeats(ranked: Selection, places: Places) -> Selection:
    """Add what was not ranked because it repeats a ranked candidate; it has the score of that one."""
    scored = {decision.candidate.id: decision.candidate for decision in ranked.decisions}
    verdicts = []
    for _, candidate, _, reason in places.selection.decisions:
        if same := scored.get(places.repeats.get(candidate.id, "")):
            candidate = replace(candidate, score=same.score, score_scale=same.score_scale)
            verdicts.append((candidate, False, reason))
    return Selection.of(verdicts).then(ranked)


def _load(part: Any) -> None:
    """Load the model of a stage, if it has one."""
    with suppress(Exception):
        getattr(part, "load_model", lambda: None)()
