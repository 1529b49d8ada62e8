"""Document compressors: rerank documents, select them by score, drop repetitions.

Each is a `BaseDocumentCompressor`, for ContextualCompressionRetriever and its like, and also a
Runnable over `{"query", "documents"}`, for LCEL. It takes the documents of any retriever and returns
new ones. The documents passed in are not changed.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import run_in_executor
from pydantic import ConfigDict, Field, PrivateAttr
from typing_extensions import TypedDict

from langchain_precise.convert import from_selection, to_candidates
from langchain_precise.events import observe, observing
from precise_rag._arguments import own_errors
from precise_rag.candidate_filters import RedundancyFilter
from precise_rag.encoders import load_encoder
from precise_rag.protocols import Reranker
from precise_rag.rerank import calibrated, load_reranker, rerank, rerank_best, unread_note
from precise_rag.selection import DEFAULT_SELECTOR, GradientSelector, selector_of
from precise_rag.trace import Trace
from precise_rag.types import Candidate, ScoreScale, Selection

_REDUNDANCY = RedundancyFilter()


class CompressorInput(TypedDict):
    """The input of a compressor as a Runnable."""

    query: str
    documents: list[Document]


class SelectionCompressor(BaseDocumentCompressor, RunnableSerializable[CompressorInput, list[Document]]):
    """Base of the compressors, which keep some documents and drop the rest.

    Kept documents are copies, best first, with the facts about them in `metadata["precise"]`, see
    `read_facts`. Every decision, on dropped documents too, is sent to the callbacks as a custom event.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    def __init__(self, **fields: Any) -> None:
        with own_errors(type(self).__name__):
            super().__init__(**fields)

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return True: settings can be saved, but a model only if it is given by name."""
        return True

    @abstractmethod
    def decide(self, candidates: Sequence[Candidate], query: str, trace: Trace) -> Selection:
        """Return the core's decision on each candidate; language model calls are recorded in `trace`."""

    async def adecide(self, candidates: Sequence[Candidate], query: str, trace: Trace) -> Selection:
        """Run `decide` without blocking the event loop."""
        return await run_in_executor(None, self.decide, candidates, query, trace)

    def candidates(self, documents: Sequence[Document]) -> list[Candidate]:
        """Return the documents as core candidates."""
        return to_candidates(documents)

    def select(self, documents: Sequence[Document], query: str) -> Selection:
        """Return the decision on each document: kept or dropped, with its score and the reason."""
        return self.decide(self.candidates(documents), query, Trace(query))

    def documents(self, selection: Selection) -> list[Document]:
        """Return the kept candidates as documents."""
        return from_selection(selection)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return copies of the kept documents, best first."""
        return self.invoke({"query": query, "documents": list(documents)}, {"callbacks": callbacks})

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Run `compress_documents` without blocking the event loop."""
        return await self.ainvoke({"query": query, "documents": list(documents)}, {"callbacks": callbacks})

    def as_runnable(self) -> RunnableSerializable[CompressorInput, list[Document]]:
        """Return this object, typed as the Runnable from `{"query", "documents"}` to documents."""
        return self

    def invoke(
        self, input: CompressorInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return copies of the kept documents, best first."""
        return self._call_with_config(self._compress, input, config, **kwargs)

    async def ainvoke(
        self, input: CompressorInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Run `invoke` without blocking the event loop."""
        return await self._acall_with_config(self._acompress, input, config, **kwargs)

    def _compress(self, input: CompressorInput) -> list[Document]:
        documents, query = input["documents"], input["query"]
        trace = Trace(query, observer=observe)
        with trace.stage(self.get_name()) as stage:
            stage.outcome = selection = self.decide(self.candidates(documents), query, trace)
        return self.documents(selection)

    async def _acompress(self, input: CompressorInput) -> list[Document]:
        documents, query = input["documents"], input["query"]
        async with observing() as observer:
            trace = Trace(query, observer=observer)
            with trace.stage(self.get_name()) as stage:
                stage.outcome = selection = await self.adecide(self.candidates(documents), query, trace)
        return self.documents(selection)


class RerankCompressor(SelectionCompressor):
    """Compressor that scores documents against the query and returns the best.

    The scores they had are among the facts: `read_facts(document)["scores"]`.

    reranker: "default" (the best that is installed), "packaged", "cascade", "cohere:<model>", a
    CrossEncoder name or path, a reranker object, or another LangChain compressor.
    top_n: how many documents to return; default: all.
    score_scale: scale of the scores if the reranker is another LangChain compressor; by default only
    its order counts.
    """

    reranker: Any = "default"
    top_n: int | None = Field(default=None, ge=1)
    score_scale: ScoreScale | None = None

    _reranker: Reranker = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Load the reranker now, not at the first query."""
        self._reranker = load_reranker(self.reranker, score_scale=self.score_scale)

    def decide(self, candidates: Sequence[Candidate], query: str, trace: Trace) -> Selection:
        """Keep the best `top_n` candidates."""
        return rerank_best(query, candidates, self._reranker, self.top_n)


class GradientSelectionCompressor(SelectionCompressor):
    """Compressor that keeps documents up to the first sharp drop of the score (SAGE, section V).

    reranker: gives the scores to cut on; None never reranks. It is not called if the documents come
    from a precise-rag reranker, or if `score_scale` is set.
    score_scale: the scale of the documents' own `relevance_score`, which is then cut on as it is.
    count_tokens: counts the tokens of a text for `max_tokens`; default: an estimate.
    The other fields are those of `GradientSelector`.
    """

    reranker: Any = "default"
    score_scale: ScoreScale | None = None
    min_k: int = DEFAULT_SELECTOR.min_k
    ratio: float = DEFAULT_SELECTOR.ratio
    max_k: int | None = DEFAULT_SELECTOR.max_k
    max_tokens: int | None = DEFAULT_SELECTOR.max_tokens
    min_score: float | None = DEFAULT_SELECTOR.min_score
    share_of_best: float | None = DEFAULT_SELECTOR.share_of_best
    min_keep: int = DEFAULT_SELECTOR.min_keep
    min_gap: float = DEFAULT_SELECTOR.min_gap
    count_tokens: Callable[[str], int] | None = Field(default=DEFAULT_SELECTOR.count_tokens, exclude=True)
    assume_ratio: bool = DEFAULT_SELECTOR.assume_ratio

    _reranker: Reranker | None = PrivateAttr(None)

    def model_post_init(self, context: Any) -> None:
        """Check the settings and load the reranker now, not at the first query."""
        self.selector()
        self._reranker = None if self.reranker is None else calibrated(load_reranker(self.reranker))

    def selector(self) -> GradientSelector:
        """Return the core's selector with these settings."""
        return selector_of(vars(self), self.model_fields_set)

    def candidates(self, documents: Sequence[Document]) -> list[Candidate]:
        """Return the documents as core candidates, their own scores on `score_scale`."""
        return to_candidates(documents, self.score_scale)

    def reranker_for(self, candidates: Sequence[Candidate]) -> Reranker | None:
        """Return the reranker, or None if the candidates have scores to cut on."""
        return None if self.score_scale is not None or _are_reranked(candidates) else self._reranker

    def decide(self, candidates: Sequence[Candidate], query: str, trace: Trace) -> Selection:
        """Keep the candidates before the first sharp drop."""
        return self.selector().select(self.rank(candidates, query, trace))

    def rank(self, candidates: Sequence[Candidate], query: str, trace: Trace) -> Sequence[Candidate]:
        """Return the candidates with scores to cut on: the reranker's, or their own."""
        reranker = self.reranker_for(candidates)
        if reranker is None:
            return candidates
        with trace.stage("rerank", reranker=reranker.name) as stage:
            stage.outcome = ranked = rerank(query, candidates, reranker)
            stage.note = unread_note(query, ranked)
        return ranked


class RedundancyCompressor(SelectionCompressor):
    """Compressor that drops documents that repeat a better one (ChunkRAG, section 3).

    Without scores, the earlier document is the better one.
    embeddings: finds repetitions by meaning: a name or path, an encoder object, or LangChain embeddings;
    by default only nearly equal wording counts.
    The other fields are those of `RedundancyFilter`.
    """

    embeddings: Any = None
    similarity_threshold: float = _REDUNDANCY.similarity_threshold
    prefilter: float = _REDUNDANCY.prefilter

    _filter: RedundancyFilter = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings and load the encoder now, not at the first query."""
        encoder = None if self.embeddings is None else load_encoder(self.embeddings, argument="embeddings")
        self._filter = RedundancyFilter(
            similarity_threshold=self.similarity_threshold, prefilter=self.prefilter, encoder=encoder
        )

    def decide(self, candidates: Sequence[Candidate], query: str, trace: Trace) -> Selection:
        """Keep the candidates that repeat no better one."""
        return self._filter.filter(candidates)


def _are_reranked(candidates: Sequence[Candidate]) -> bool:
    return all(candidate.score_scale in ("probability", "logit") for candidate in candidates)
