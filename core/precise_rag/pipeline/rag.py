"""The pipeline as users see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, overload

from precise_rag._pickling import Portable
from precise_rag.answer import Answer, ain_pieces, in_pieces
from precise_rag.checks import check_number, shown
from precise_rag.context import Order, context_passages
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError, PreciseRagError
from precise_rag.evidence import EvidenceGrower, FoundTexts
from precise_rag.feedback import FeedbackController, FeedbackConversation
from precise_rag.filtering import RelevanceFilter
from precise_rag.llm import Budget, load_llm
from precise_rag.llm.driver import adrive, astream, drive, stream
from precise_rag.llm.rehearsal import REPLY_TOKENS, Estimate
from precise_rag.llm.session import Conversation, Session, Work
from precise_rag.pipeline.estimate import CostEstimator
from precise_rag.pipeline.stages import METHODS, STAGES, Stage, limit
from precise_rag.presets import PresetName, load_preset
from precise_rag.prompts import AnswerStyle, JudgeStyle, Wording
from precise_rag.protocols import Encoder, Neighbours, Source
from precise_rag.rerank import load_reranker
from precise_rag.rewriting import QueryRewriter, make_standalone, merge_searches, read_history
from precise_rag.selection import GradientSelector, KeepAll, WorthSelector
from precise_rag.trace import PriceTable, Trace
from precise_rag.types import Candidate, Document, Selection, best_first, check_query

Part = Any
"""A stage of the pipeline: "default" (the preset's), None (left out), or your own object."""


class PreciseRAG(Portable):
    """Retrieves the few sentences that answer a question, and answers it from them.

    index: what is searched: any index, or another object with `search(query, top_k)`, and `asearch` if it
        has an asynchronous one; None if every question comes with its candidates.
    llm: writes the answer (any model that `load_llm` accepts); default: none, and `answer` returns the
        selected context.
    preset: where the defaults come from: "precise", "sage", "paretorag", "chunkrag" or "recursive"; default:
        "precise".

    Each stage is "default" (what the preset has), None (left out), or your own object:

    rewriter: also searches for a rewritten question, a `QueryRewriter`; "precise": none.
    reranker: scores the candidates, anything `load_reranker` accepts; "precise": `default_reranker`.
    redundancy: drops repeated candidates; "precise": `RedundancyFilter()`.
    relevance: drops candidates that a language model finds irrelevant, a `RelevanceFilter`; "precise": none.
    evidence: grows the candidates to the spans that are sent; an index of sentences is then searched for
        single sentences, and other texts that are found are split into theirs, of which the reranker's best
        `n_candidates` are used; "precise": an `EvidenceGrower`.
    selector: decides how many candidates to keep; "precise": `WorthSelector()`.
    feedback: rules of the feedback loop, a `FeedbackController`, except `min_k`, which is the selector's;
        None answers once and asks no judge; "precise": `FeedbackController()`.

    n_candidates: candidates to retrieve, at least 1; default: the preset's (50).
    order: order of what the model sees, "document" or "score" (see `Order`); default: the preset's.
    judge: judges the answer (any model that `load_llm` accepts); default: `llm`.
    budget: limits for each question, shared by all stages; default: none.
    style: "open", "short" or "choice"; default: "open", and "choice" for questions with options.
    judge_prompt: "json", or "sage" for the form of the paper; default: the preset's ("json").
    prompts: instructions to use instead of ours, under "standalone", "rewrite", "relevance", "answer" or
        "judge"; default: none.
    prices: prices of the models; default: the packaged table.
    Raises InputError for a stage that is none of these, and for one that asks a model without one.
    """

    def __init__(
        self,
        index: Source | None,
        llm: Any = None,
        *,
        preset: PresetName = "precise",
        rewriter: Part = "default",
        reranker: Part = "default",
        redundancy: Part = "default",
        relevance: Part = "default",
        evidence: Part = "default",
        selector: Part = "default",
        feedback: Part = "default",
        n_candidates: int | None = None,
        order: Order | None = None,
        judge: Any = None,
        budget: Budget | None = None,
        style: AnswerStyle = "open",
        judge_prompt: JudgeStyle | None = None,
        prompts: Mapping[str, str] | None = None,
        prices: PriceTable | None = None,
    ) -> None:
        chosen = load_preset(preset)
        encoder = getattr(index, "encoder", None)

        def part(name: str, given: Part) -> Any:
            if isinstance(given, str) and given == "default":
                return getattr(chosen, name)(index if name == "evidence" else encoder)
            if name == "reranker" and given is not None:
                return load_reranker(given, score_scale=chosen.score_scale)
            method = METHODS[name]
            if given is not None and not hasattr(given, method.split("(")[0]):
                raise InputError(
                    f'{name} must be "default", None or an object with {method}, got {type(given).__name__}'
                )
            return given

        if index is not None and not hasattr(index, "search"):
            raise InputError(
                f"index must be an index or an object with search(query, top_k), got {type(index).__name__}"
            )
        self.index = index
        self.preset = preset
        self.rewriter = part("rewriter", rewriter)
        self.reranker = part("reranker", reranker)
        self.redundancy = part("redundancy", redundancy)
        self.relevance = part("relevance", relevance)
        self.evidence = part("evidence", evidence)
        self.selector = part("selector", selector) or KeepAll()
        self.feedback = part("feedback", feedback) or FeedbackController(max_rounds=0)
        self.n_candidates = chosen.n_candidates if n_candidates is None else n_candidates
        self.order: Order = order or chosen.order
        self.llm = None if llm is None else load_llm(llm)
        self.judge = self.llm if judge is None else load_llm(judge)
        self.budget = budget or Budget()
        self.wording = Wording(
            style=style, judge_style=judge_prompt or chosen.judge_prompt, instructions=prompts or {}
        )
        self.prices = prices or PriceTable.load()
        check_number("n_candidates", self.n_candidates, least=1, whole=True)
        if self.order not in ("document", "score"):
            raise InputError(f'order must be "document" or "score", got {shown(order)}')
        self._check_models()

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        llm: Any = None,
        *,
        preset: PresetName = "precise",
        encoder: Encoder | str = DEFAULT_ENCODER,
        index_options: Mapping[str, Any] | None = None,
        show_progress: bool = False,
        **options: Any,
    ) -> Self:
        """Index `documents` with the index of the preset and build the pipeline on it.

        documents: the texts to index.
        llm, preset: as for the constructor.
        encoder: a name, a path or an Encoder; default: `DEFAULT_ENCODER`.
        index_options: further arguments of the index's `build`, such as {"passages": "segments"}; default:
            the preset's.
        show_progress: show progress bars while indexing; default: False.
        options: further arguments of the constructor.
        """
        chosen = load_preset(preset)
        if index_options is not None and not isinstance(index_options, Mapping):
            raise InputError(f"index_options must be a mapping, got {type(index_options).__name__}")
        loaded = load_encoder(encoder)
        built = {**chosen.index_options(loaded), **(index_options or {})}
        index = chosen.index(documents, loaded, show_progress=show_progress, **built)
        return cls(index, llm, preset=preset, **options)

    def retrieve(
        self,
        query: str,
        *,
        history: Iterable[Any] = (),
        filter: Any = None,
        candidates: Iterable[Candidate] | None = None,
        trace: Trace | None = None,
    ) -> Selection:
        """Return the candidates for `query`, each kept or dropped with a reason.

        query: the question, not blank.
        history: the messages of the chat before it, the oldest first, each a `Message`, a (role, content)
            pair or a mapping of both; a model first makes the question self-contained. Default: none.
        filter: passed to the index's `search`; default: not passed.
        candidates: select from these and do not search; default: search.
        trace: record to add to, for instance one with an observer; default: a new one.
        """
        return drive(self._retrieve(query, history, filter, candidates, trace))

    async def aretrieve(
        self,
        query: str,
        *,
        history: Iterable[Any] = (),
        filter: Any = None,
        candidates: Iterable[Candidate] | None = None,
        trace: Trace | None = None,
    ) -> Selection:
        """`retrieve` without blocking the event loop."""
        return await adrive(self._retrieve(query, history, filter, candidates, trace))

    def answer(
        self,
        query: str,
        *,
        options: Sequence[str] = (),
        history: Iterable[Any] = (),
        filter: Any = None,
        candidates: Iterable[Candidate] | None = None,
        trace: Trace | None = None,
    ) -> Answer:
        """Return an answer from the selected context, judged and improved by the feedback loop.

        query, history, filter, candidates, trace: as for `retrieve`.
        options: the choices of a multiple-choice question; default: none.
        Without a language model the answer is the selected context itself, with kind="context".
        Raises LLMError if not even a first draft was written.
        """
        return drive(self._answer(query, options, history, filter, candidates, trace))

    async def aanswer(
        self,
        query: str,
        *,
        options: Sequence[str] = (),
        history: Iterable[Any] = (),
        filter: Any = None,
        candidates: Iterable[Candidate] | None = None,
        trace: Trace | None = None,
    ) -> Answer:
        """`answer` without blocking the event loop. Cancelling it cancels the running call."""
        return await adrive(self._answer(query, options, history, filter, candidates, trace))

    def stream(
        self,
        query: str,
        *,
        options: Sequence[str] = (),
        history: Iterable[Any] = (),
        filter: Any = None,
        candidates: Iterable[Candidate] | None = None,
        trace: Trace | None = None,
        live_final: bool = False,
    ) -> Iterator[str | Answer]:
        """Yield the text of the answer in pieces, then the Answer.

        query, options, history, filter, candidates, trace: as for `answer`.
        live_final: yield the draft of the last round while the model writes it, and judge it afterwards.
            It is then the answer, even if an earlier draft has a better score; if it breaks off, its
            error is raised. Default: all drafts are judged first, and the best one is yielded.
        """
        answering = self._answer(query, options, history, filter, candidates, trace, live_final)
        return in_pieces(stream(answering))

    def astream(
        self,
        query: str,
        *,
        options: Sequence[str] = (),
        history: Iterable[Any] = (),
        filter: Any = None,
        candidates: Iterable[Candidate] | None = None,
        trace: Trace | None = None,
        live_final: bool = False,
    ) -> AsyncGenerator[str | Answer, None]:
        """`stream` without blocking the event loop.

        If you leave it early, close it (`contextlib.aclosing`) to end the running call.
        """
        answering = self._answer(query, options, history, filter, candidates, trace, live_final)
        return ain_pieces(astream(answering))

    @overload
    async def abatch(
        self,
        queries: Iterable[str | Mapping[str, Any]],
        *,
        concurrency: int = 8,
        return_errors: Literal[False] = False,
    ) -> list[Answer]: ...

    @overload
    async def abatch(
        self,
        queries: Iterable[str | Mapping[str, Any]],
        *,
        concurrency: int = 8,
        return_errors: Literal[True],
    ) -> list[Answer | PreciseRagError]: ...

    async def abatch(
        self,
        queries: Iterable[str | Mapping[str, Any]],
        *,
        concurrency: int = 8,
        return_errors: bool = False,
    ) -> list[Answer] | list[Answer | PreciseRagError]:
        """Answer several queries concurrently. Returns the answers in order.

        queries: the questions; or, for those with options, a history or a filter, mappings of the arguments
            of `answer`, such as {"query": "…", "options": […]}.
        concurrency: questions at a time, at least 1; default: 8.
        return_errors: return an error in place of its answer; default: False, so the first error cancels
            the other questions and is raised.
        """
        check_number("concurrency", concurrency, least=1, whole=True)
        slots = asyncio.Semaphore(concurrency)

        async def answer(query: str | Mapping[str, Any]) -> Answer | PreciseRagError:
            given = {"query": query} if isinstance(query, str) else dict(query)
            async with slots:
                try:
                    return await self.aanswer(**given)
                except PreciseRagError as error:
                    if not return_errors:
                        raise
                    return error

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(answer(query)) for query in queries]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    def estimate(
        self,
        query: str,
        *,
        options: Sequence[str] = (),
        history: Iterable[Any] = (),
        filter: Any = None,
        candidates: Iterable[Candidate] | None = None,
        reply_tokens: int = REPLY_TOKENS,
    ) -> Estimate:
        """Return the least and the most that `answer` can use, without calling a language model.

        query, options, history, filter, candidates: as for `answer`.
        reply_tokens: tokens of the longest reply that you expect; default: `REPLY_TOKENS`.
        The least is a first draft that is accepted, if there surely is one. The most has every round, and
        every call that is made again because it was refused or could not be read. Calls count even where
        they fail; the tokens of a call that failed are not known, and not counted. If a rewriter or a
        history may find other pieces, the most takes them to be as long as the longest that is known.
        Raises InputError if the pipeline has no language model.
        """
        if self.llm is None or self.judge is None:
            raise InputError("there is nothing to estimate without a language model; pass llm=")
        check_query(query)
        check_number("reply_tokens", reply_tokens, least=1, whole=True)
        session = self._session(query, None)
        ranked = drive(self._rank(query, filter, candidates, session, ask_models=False))
        return CostEstimator(
            question=query,
            history=read_history(history),
            options=tuple(options),
            ranked=ranked.kept,
            is_searched=candidates is None,
            n_candidates=self.n_candidates,
            rewriter=self.rewriter if isinstance(self.rewriter, QueryRewriter) else None,
            relevance=self.relevance if isinstance(self.relevance, RelevanceFilter) else None,
            select=partial(self._select_at, ranked),
            llm=self.llm,
            judge=self.judge,
            controller=self._controller(),
            wording=self.wording.for_options(options),
            session=session,
            reply_tokens=reply_tokens,
        ).estimate()

    def with_k(self, k: int | None) -> Self:
        """Return a pipeline that keeps exactly the best `k`, if there are as many; None: this one.

        Everything but the selector is shared.
        """
        if k is None:
            return self
        return self._with(selector=GradientSelector(min_k=k, max_k=k, ratio=0.0, assume_ratio=True))

    def with_wording(self, wording: Wording) -> Self:
        """Return a pipeline with other prompts. Everything else is shared."""
        return self._with(wording=wording)

    def _with(self, **parts: Any) -> Self:
        other = object.__new__(type(self))
        other.__dict__ |= {**vars(self), **parts}
        return other

    def save(self, path: str | Path) -> None:
        """Save the index to `path`. The other stages are not saved."""
        save = getattr(self.index, "save", None)
        if save is None:
            raise InputError(f"the index cannot be saved: {type(self.index).__name__} has no save(path)")
        save(path)

    def _retrieve(
        self,
        query: str,
        history: Iterable[Any],
        filter: Any,
        candidates: Iterable[Candidate] | None,
        trace: Trace | None,
    ) -> Conversation[Selection]:
        session = self._session(query, trace)
        question = yield from self._standalone(query, history, session)
        ranked = yield from self._rank(question, filter, candidates, session)
        return self._select(ranked, session.trace)

    def _answer(
        self,
        query: str,
        options: Sequence[str],
        history: Iterable[Any],
        filter: Any,
        candidates: Iterable[Candidate] | None,
        trace: Trace | None,
        live_final: bool = False,
    ) -> Conversation[Answer]:
        wording = self.wording.for_options(options)
        session = self._session(query, trace, reserved=0 if self.llm is None else 1)
        question = yield from self._standalone(query, history, session)
        ranked = yield from self._rank(question, filter, candidates, session)
        if self.llm is None or self.judge is None:
            return self._context_answer(question, ranked, session.trace)
        answering = FeedbackConversation(
            question=question,
            options=tuple(options),
            select=partial(self._select_at, ranked),
            llm=self.llm,
            judge=self.judge,
            controller=self._controller(),
            wording=wording,
            order=self.order,
            live_final=live_final,
            session=session,
        )
        return (yield from answering.steps())

    def _session(self, query: str, trace: Trace | None, *, reserved: int = 0) -> Session:
        """Start the budget of a question."""
        check_query(query)
        trace = trace or Trace(query)
        chosen = self.selector
        selector = (
            asdict(chosen)
            if isinstance(chosen, GradientSelector | KeepAll | WorthSelector)
            else type(chosen).__name__
        )
        trace.settings |= {"preset": self.preset, "selector": selector}
        if self.reranker is not None:
            trace.settings["reranker"] = self.reranker.name
        return Session(
            spending=self.budget.start(), prices=self.prices, trace=trace, llm=self.llm, reserved=reserved
        )

    def _standalone(self, query: str, history: Iterable[Any], session: Session) -> Conversation[str]:
        messages = read_history(history)
        if not messages:
            return query
        return (yield from make_standalone(query, messages, session, self.wording))

    def _rank(
        self,
        query: str,
        filter: Any,
        candidates: Iterable[Candidate] | None,
        session: Session,
        *,
        ask_models: bool = True,
    ) -> Conversation[Selection]:
        """Run the stages before the selection: it keeps what there is to select from."""
        if candidates is None:
            queries = (yield from self._queries(query, session)) if ask_models else (query,)
            found = yield from self._search(queries, filter, session)
        else:
            found = best_first(candidates)
        texts = FoundTexts(found) if self._splits_texts else None
        ranked = Selection.keep_all(found) if texts is None else texts.sentences
        for stage in self._stages(ask_models, texts):
            with session.trace.stage(stage.name, **stage.settings) as record:
                outcome = yield from stage.steps(query, ranked.kept, session, self.wording)
                record.outcome = outcome
            later = outcome if isinstance(outcome, Selection) else Selection.keep_all(outcome)
            ranked = ranked.then(later)
        return ranked

    def _queries(self, query: str, session: Session) -> Conversation[Sequence[str]]:
        if self.rewriter is None:
            return (query,)
        if isinstance(self.rewriter, QueryRewriter):
            return (yield from self.rewriter.steps(query, session, self.wording))
        arun = _method(self.rewriter, "aqueries", query)
        queries: Sequence[str] = yield Work(partial(self.rewriter.queries, query), arun)
        return queries

    def _search(self, queries: Sequence[str], filter: Any, session: Session) -> Conversation[list[Candidate]]:
        if self.index is None:
            raise InputError("there is no index to search; pass candidates=, or an index to the constructor")
        given = {} if filter is None else {"filter": filter}
        if self.evidence is not None and isinstance(self.index, Neighbours):
            given["returns"] = "sentence"
        searches = []
        with session.trace.stage("search", n_candidates=self.n_candidates, queries=len(queries)) as stage:
            for one in queries:
                run = partial(self.index.search, one, self.n_candidates, **given)
                arun = _method(self.index, "asearch", one, self.n_candidates, **given)
                searches.append((yield Work(run, arun)))
            stage.outcome = found = merge_searches(searches)
        return found

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

    def _select(self, ranked: Selection, trace: Trace) -> Selection:
        min_k = self._controller().min_k
        with trace.stage("selection", min_k=min_k) as stage:
            stage.outcome = selected = self._select_at(ranked, min_k)
        return selected

    def _select_at(self, ranked: Selection, min_k: int) -> Selection:
        """The selection at `min_k`, which the feedback loop changes."""
        if hasattr(self.selector, "select_at"):
            return ranked.then(self.selector.select_at(ranked.kept, min_k))
        return ranked.then(self.selector.select(ranked.kept))

    def _controller(self) -> FeedbackController:
        """The rules of the feedback loop, from the selector's `min_k` on."""
        return replace(self.feedback, min_k=getattr(self.selector, "min_k", self.feedback.min_k))

    def _context_answer(self, question: str, ranked: Selection, trace: Trace) -> Answer:
        selection = self._select(ranked, trace)
        passages = context_passages(selection.kept, self.order)
        trace.answer = text = "\n\n".join(passage.text.strip() for passage in passages)
        note = "no language model is configured, so this is the selected context"
        return Answer(
            text, "context", selection, note=note, trace=trace, question=question, passages=passages
        )

    def _check_models(self) -> None:
        """Raise InputError for a stage without a model, or a model without the price a budget needs."""
        asking = {name: getattr(self, name) for name in ("rewriter", "relevance")}
        for name, stage in asking.items():
            if isinstance(stage, QueryRewriter | RelevanceFilter) and stage.llm is None and self.llm is None:
                raise InputError(
                    f"the {name} of the preset {self.preset!r} asks a language model, and there is none; "
                    f"pass llm=, or {name}=None to leave it out"
                )
        own = [getattr(stage, "llm", None) for stage in asking.values()]
        for model in (self.llm, self.judge, *own):
            if model is not None:
                self.budget.start().check(model.name, 0, self.prices.cost(model.name, 0, 0))


def _method(owner: Any, name: str, *args: Any, **kwargs: Any) -> Callable[[], Awaitable[Any]] | None:
    """A method of an object with its arguments; None if the object has no such method."""
    method = getattr(owner, name, None)
    return None if method is None else partial(method, *args, **kwargs)
