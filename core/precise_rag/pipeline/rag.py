"""The pipeline as users see it."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from copy import copy, deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, Unpack, get_args, overload

from precise_rag.answer import Answer, ain_pieces, in_pieces
from precise_rag.checks import check_choice, check_number, items_of, of_kind, shown
from precise_rag.context import context_passages, passage_tokens, prompt_form
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.encoders.local import count_packaged_tokens
from precise_rag.errors import EmptyIndexError, InputError, PreciseRagError
from precise_rag.excerpts import Order, within
from precise_rag.feedback import FeedbackController, FeedbackConversation
from precise_rag.filters import as_filter
from precise_rag.llm import Budget, load_llm
from precise_rag.llm.driver import adrive, astream, drive, stream
from precise_rag.llm.session import Conversation, Session
from precise_rag.pipeline.path import AnswerArguments, Question, RetrievalPath, SearchArguments
from precise_rag.pipeline.stages import AsksModel, KeepAll, Stages, make_stages
from precise_rag.presets import PresetName, load_preset
from precise_rag.prompts import AnswerStyle, JudgeStyle, Wording
from precise_rag.protocols import Encoder, Index, Source
from precise_rag.rewriting import make_standalone
from precise_rag.tokens import CountTokens, counting
from precise_rag.trace import PriceTable
from precise_rag.types import Document, Selection

_Queries: TypeAlias = Iterable[str | Mapping[str, Any]]


class PreciseRAG:
    """Retrieves the few sentences that answer a question, and answers it from them.

    index: what is searched: any index, or another object with `search(query, top_k)`, and `asearch` if it
        has an asynchronous one; None if every question comes with its candidates.
    llm: writes the answer (what `load_llm` accepts); default: none, and the selected context is the answer.
    preset: where the defaults come from: "precise", "sage", "paretorag", "chunkrag" or "recursive"; default:
        "precise".
    n_candidates: candidates to retrieve, at least 1; default: the preset's (50).

    **Stages.** Each is "default" (what the preset has), None (left out), or your own object:

    rewriter: also searches for a rewritten question, a `QueryRewriter`; "precise": none.
    reranker: scores the candidates, anything `load_reranker` accepts; "precise": the cascade.
    redundancy: drops repeated candidates; "precise": `RedundancyFilter()`.
    relevance: drops candidates that a language model finds irrelevant, a `RelevanceFilter`; "precise": none.
    evidence: grows the candidates to the spans that are sent; an index of sentences is then searched for
        single sentences, and other texts that are found are split into theirs, of which the reranker's best
        200 are used, or `n_candidates` if that is more; "precise": an `EvidenceGrower`.
    selector: decides how many candidates to keep; "precise": `ProbabilitySelector(assume_ratio=True)`.
    feedback: rules of the feedback loop, a `FeedbackController`; None answers once and asks no judge;
        "precise": `FeedbackController()`.

    **Prompts.**

    max_tokens: most tokens that are sent, as they are written: the texts, what stands above them, and the
        marks of the prompt for an answer; default: that of the selector, if it has one.
    count_tokens: counts the tokens of a text, or of several, for it; default: those of the default encoder.
    order: order of what the model sees, "document" or "score" (see `Order`); default: the preset's.
    style: "open", "short" or "choice"; default: "open", and "choice" for questions with options.
    judge_prompt: "json", or "sage" for the form of the paper; default: the preset's ("json").
    prompts: instructions to use instead of ours, under "standalone", "rewrite", "relevance", "answer" or
        "judge"; default: none.

    **Models and their cost.**

    judge: judges the answers of `llm`, with `feedback` (any model that `load_llm` accepts); default: `llm`.
    budget: limits for each question, shared by all stages; default: none.
    prices: prices of the models; default: the packaged table.

    path: the index and the stages, as they were made. filter: that of `with_filter`.
    Raises InputError for a stage that is none of these, and for one that asks a model without one.
    """

    def __init__(
        self,
        index: Source | None,
        llm: Any = None,
        *,
        preset: PresetName = "precise",
        n_candidates: int | None = None,
        max_tokens: int | None = None,
        count_tokens: CountTokens | None = None,
        order: Order | None = None,
        style: AnswerStyle = "open",
        judge_prompt: JudgeStyle | None = None,
        prompts: Mapping[str, str] | None = None,
        judge: Any = None,
        budget: Budget | None = None,
        prices: PriceTable | None = None,
        **stages: Unpack[Stages],
    ) -> None:
        if index is not None and (hasattr(index, "as_retriever") or not hasattr(index, "search")):
            raise InputError(
                f"index must be an index or an object with search(query, top_k), got {type(index).__name__}; "
                "PreciseRetriever.from_store is for stores of LlamaIndex and LangChain and indexes over them"
            )
        chosen = load_preset(preset)
        made = make_stages(chosen, index, stages)
        self.preset = preset
        self.feedback: FeedbackController = made.pop("feedback") or FeedbackController(max_rounds=0)
        self.path = RetrievalPath(
            index=index,
            n_candidates=chosen.n_candidates if n_candidates is None else n_candidates,
            selector=made.pop("selector") or KeepAll(),
            reranks_last=chosen.reranks_last,
            **made,
        )
        check_number("max_tokens", max_tokens, least=1, whole=True, none="no limit")
        self.max_tokens = max_tokens or getattr(self.path.selector, "max_tokens", None)
        self._count = counting(count_tokens or count_packaged_tokens)
        self.order: Order = order or chosen.order
        self.filter: Any = None
        self.llm = None if llm is None else load_llm(llm)
        self.judge = self.llm if judge is None else load_llm(judge, argument="judge")
        self.budget = of_kind("budget", budget, Budget, Budget)
        judging, own = judge_prompt or chosen.judge_prompt, of_kind("prompts", prompts, Mapping, dict)
        self.wording = Wording(style=style, judge_style=judging, instructions=own)
        self.prices = of_kind("prices", prices, PriceTable, PriceTable.load)
        check_choice("order", self.order, get_args(Order))
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

        llm, preset: as for the constructor.
        encoder: a name, a path or an Encoder; default: `DEFAULT_ENCODER`.
        index_options: further arguments of the index's `build`, such as {"passages": "segments"}; default:
            the preset's.
        show_progress: show progress bars while indexing; default: False.
        options: further arguments of the constructor.
        """
        chosen = load_preset(preset)
        of_kind("index_options", index_options, Mapping, dict)
        checked = cls(None, llm, preset=preset, **options)  # what is wrong is said before the work
        loaded = load_encoder(encoder)
        built = {**chosen.index_options(loaded), **(index_options or {})}
        index = chosen.index(documents, loaded, show_progress=show_progress, **built)
        return cls(index, checked.llm, preset=preset, **{**options, "judge": checked.judge})

    @property
    def index(self) -> Source | None:
        """What is searched."""
        return self.path.index

    @property
    def own_index(self) -> Index:
        """What is searched, if documents can be added to it and deleted. Raises InputError if they cannot."""
        if not isinstance(self.index, Index):
            raise InputError("this pipeline searches no index of ours; change the collection where it is")
        return self.index

    def with_k(self, k: int | None) -> Self:
        """Return a pipeline that keeps exactly the best `k`, if there are as many; None: this one.

        Everything but the selector is shared. Each piece is sent by itself, in the order of the scores.
        """
        if k is None:
            return self
        other = copy(self)
        other.path, other.order = self.path.with_k(k), "score"
        return other

    def with_filter(self, filter: Any) -> Self:
        """Return a pipeline that applies a filter to every search, beside its own; for None, this pipeline.

        It is copied. That of a question applies as well. Raises InputError for a second filter unless an
        index is searched: nothing else can join two.
        """
        if filter is None:
            return self
        if isinstance(self.index, Index):
            filter = as_filter(filter) if self.filter is None else as_filter(self.filter) & as_filter(filter)
        elif self.filter is not None:
            raise InputError("what is searched has a filter for every question, and takes no second one")
        other = copy(self)
        other.filter = deepcopy(filter) if isinstance(filter, dict) else filter
        return other

    def with_llm(self, llm: Any) -> Self:
        """Return a pipeline whose answers `llm` writes, and judges unless `judge` was set; None: its own."""
        other = copy(self)
        if llm is not None:
            other.llm = load_llm(llm)
            other.judge = other.llm if self.judge is self.llm else self.judge
            other._check_models()
        return other

    def retrieve(self, query: str, **further: Unpack[SearchArguments]) -> Selection:
        """Return the candidates for `query`, each kept or dropped with a reason; of an empty index none.

        query: the question, not blank. The further arguments are:
        history: the messages of the chat before it, the oldest first, each a `Message`, a (role, content)
            pair or a mapping of both; a model first makes the question self-contained. Default: none.
        filter: passed to the index's `search`, see `with_filter`; default: not passed.
        vector: (d,) searched for in place of the query's own, if the index's `search` takes one, and by the
            same model; the words of the query count as before. Default: the query is encoded.
        candidates: select from these and do not search; default: search.
        trace: record to add to, for instance one with an observer; default: a new one.
        max_tokens: most tokens that are sent for this question; default: the pipeline's.
        form: how you write what is kept, for `max_tokens`; default: as the prompt for an answer has it.
        """
        return drive(self._retrieve(Question(query, **further)))

    async def aretrieve(self, query: str, **further: Unpack[SearchArguments]) -> Selection:
        """`retrieve`, with the same arguments, without blocking the event loop."""
        return await adrive(self._retrieve(Question(query, **further)))

    def answer(self, query: str, **further: Unpack[AnswerArguments]) -> Answer:
        """Return an answer from the selected context, judged and improved by the feedback loop.

        query: the question, not blank.
        further: the arguments of `retrieve`, and `options`: the choices of a multiple-choice question.
        Without a language model the answer is the selected context itself, with kind="context".
        Raises LLMError if not even a first draft was written.
        """
        return drive(self._answer(Question(query, **further)))

    async def aanswer(self, query: str, **further: Unpack[AnswerArguments]) -> Answer:
        """`answer`, with the same arguments, without blocking the event loop.

        Cancelling it cancels the running call.
        """
        return await adrive(self._answer(Question(query, **further)))

    def stream(
        self, query: str, *, live_final: bool = False, **further: Unpack[AnswerArguments]
    ) -> Iterator[str | Answer]:
        """Yield the text of the answer in pieces, then the Answer.

        live_final: yield the draft of the last round while the model writes it, and judge it afterwards.
            It is then the answer, even if an earlier draft has a better score; if it breaks off, its
            error is raised. Default: all drafts are judged first, and the best one is yielded.
        further: the further arguments of `answer`.
        """
        return in_pieces(stream(self._answer(Question(query, **further), live_final)))

    def astream(
        self, query: str, *, live_final: bool = False, **further: Unpack[AnswerArguments]
    ) -> AsyncGenerator[str | Answer, None]:
        """`stream`, with the same arguments, without blocking the event loop.

        If you leave it early, close it (`contextlib.aclosing`) to end the running call.
        """
        return ain_pieces(astream(self._answer(Question(query, **further), live_final)))

    @overload
    async def abatch(
        self, queries: _Queries, *, concurrency: int = 8, return_errors: Literal[False] = False
    ) -> list[Answer]: ...

    @overload
    async def abatch(
        self, queries: _Queries, *, concurrency: int = 8, return_errors: Literal[True]
    ) -> list[Answer | PreciseRagError]: ...

    async def abatch(
        self, queries: _Queries, *, concurrency: int = 8, return_errors: bool = False
    ) -> list[Answer] | list[Answer | PreciseRagError]:
        """Answer several queries concurrently. Returns the answers in order.

        queries: the questions; or, for those with options, a history or a filter, mappings of the arguments
            of `answer`, such as {"query": "…", "options": […]}.
        concurrency: questions at a time, at least 1; default: 8.
        return_errors: return an error in place of its answer; default: False, so the first error cancels
            the other questions and is raised.
        """
        check_number("concurrency", concurrency, least=1, whole=True)
        if isinstance(queries, str | Mapping):
            raise InputError(f"queries must be a list, got {shown(queries)}; pass [question]")
        slots = asyncio.Semaphore(concurrency)

        async def one(query: str | Mapping[str, Any]) -> Answer | PreciseRagError:
            arguments: Any = query if isinstance(query, Mapping) else {"query": query}
            async with slots:
                try:
                    if arguments.keys() - AnswerArguments.__optional_keys__ != {"query"}:
                        raise InputError(f'a query has "query" and arguments of answer, got {shown(query)}')
                    return await self.aanswer(**arguments)
                except PreciseRagError as error:
                    if not return_errors:
                        raise
                    return error

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(query)) for query in items_of("queries", queries, object)]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    def save(self, path: str | Path) -> None:
        """Save the index to `path`. The other stages are not saved."""
        save = getattr(self.index, "save", None)
        if save is None:
            raise InputError(f"{type(self.index).__name__} has no save(path); a database saves each change")
        save(path)

    def _retrieve(self, search: Question) -> Conversation[Selection]:
        try:
            standalone, ranked, session = yield from self._ranked(search)
        except EmptyIndexError:
            return Selection()
        return self._select(standalone, ranked, session)

    def _answer(self, question: Question, live_final: bool = False) -> Conversation[Answer]:
        wording = self.wording.for_options(question.options)
        standalone, ranked, session = yield from self._ranked(question, reserved=0 if self.llm is None else 1)
        if self.llm is None or self.judge is None:
            return self._context_answer(standalone, ranked, session)
        answering = FeedbackConversation(
            question=standalone.text,
            options=question.options,
            select=lambda step: self._within(self.path.select(standalone.text, ranked, step), standalone),
            llm=self.llm,
            judge=self.judge,
            controller=self.feedback,
            wording=wording,
            order=self.order,
            live_final=live_final,
            session=session,
        )
        return (yield from answering.steps())

    def _ranked(
        self, search: Question, *, reserved: int = 0
    ) -> Conversation[tuple[Question, Selection, Session]]:
        """The question as it reads without its history, what is ranked for it, and its session."""
        wanted = self.with_filter(search.filter).filter
        begun = Session.start(search.text, budget=self.budget, prices=self.prices, trace=search.trace)
        session = replace(begun, llm=self.llm, reserved=reserved)
        session.trace.settings |= {"preset": self.preset, **self.path.settings}
        text = yield from make_standalone(search.text, search.history, session, self.wording)
        limit = search.max_tokens or self.max_tokens
        standalone = replace(search, text=text, filter=wanted, max_tokens=limit)
        ranked = yield from self.path.rank(standalone, session, self.wording)
        return standalone, ranked, session

    def _select(self, search: Question, ranked: Selection, session: Session) -> Selection:
        """Select within `max_tokens`, and record it as one stage or two."""
        with session.trace.stage("selection", **self.path.selector_settings) as stage:
            stage.outcome = selection = self.path.select(search.text, ranked)
        if search.max_tokens is not None:
            with session.trace.stage("max_tokens", max_tokens=search.max_tokens) as stage:
                stage.outcome = selection = self._within(selection, search)
        return selection

    def _within(self, selection: Selection, search: Question) -> Selection:
        form = search.form or prompt_form(search.text, search.options)
        return within(selection, search.max_tokens, self.order, form._replace(counts=self._count))

    def _context_answer(self, search: Question, ranked: Selection, session: Session) -> Answer:
        trace = session.trace
        selection = self._select(search, ranked, session)
        passages = context_passages(selection, self.order)
        trace.send(passages, passage_tokens)
        trace.answer = text = "\n\n".join(passage.text.strip() for passage in passages)
        note = "no language model is configured, so this is the selected context"
        return Answer(
            text, "context", selection, note=note, trace=trace, question=search.text, passages=passages
        )

    def _check_models(self) -> None:
        """Raise InputError for a stage without a model, or a model without the price a budget needs."""
        asking = {"rewriter": self.path.rewriter, "relevance": self.path.relevance}
        for name, stage in asking.items():
            if isinstance(stage, AsksModel) and stage.llm is None and self.llm is None:
                told = f"and there is none; pass llm=, or {name}=None to leave it out"
                raise InputError(f"the {name} of the preset {self.preset!r} asks a language model, {told}")
        own = [getattr(stage, "llm", None) for stage in asking.values()]
        for model in (self.llm, self.judge, *own):
            if model is not None:
                self.budget.start().check(model.name, 0, self.prices.cost(model.name, 0, 0))


def check_pipeline(rag: object) -> PreciseRAG:
    """Return the pipeline. Raises InputError if it is none, such as the name of a preset."""
    if not isinstance(rag, PreciseRAG):
        raise InputError(
            f"rag must be a PreciseRAG, got {shown(rag)}; of a retriever or chain take .rag; make one from a "
            'preset\'s name by PreciseRAG(index, llm, preset="sage"), and a retriever over a store, or an '
            "index over one, by PreciseRetriever.from_store, over an index of ours by from_index"
        )
    return rag
