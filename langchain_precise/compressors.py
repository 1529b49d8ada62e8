"""Document compressors: they keep the right few of the documents that a retriever found.

Each is a `BaseDocumentCompressor`, for ContextualCompressionRetriever and its like, and at the
same time a Runnable over `{"query", "documents"}`, for LCEL.
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

from langchain_precise.convert import kept_documents, to_candidates
from langchain_precise.events import observe, observing
from precise_rag.encoders import load_encoder
from precise_rag.filtering import RedundancyFilter
from precise_rag.protocols import Reranker
from precise_rag.rerank import load_reranker, rerank
from precise_rag.selection import GradientSelector
from precise_rag.trace import Trace
from precise_rag.types import Candidate, ScoreScale, Selection

_SELECTOR = GradientSelector()
_REDUNDANCY = RedundancyFilter()


class CompressorInput(TypedDict):
    """What a compressor takes as a Runnable."""

    query: str
    documents: list[Document]


class PreciseCompressor(BaseDocumentCompressor, RunnableSerializable[CompressorInput, list[Document]]):
    """Any selector or filter of the core, as a document compressor.

    Documents come back as copies with their ids and metadata, best first, with the score in
    `metadata["relevance_score"]` and the reason in `metadata["precise_rag"]`. Every decision,
    on the dropped ones too, goes to the callbacks as a custom event (see `events`).
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Settings are; a model that is given as an object rather than by name is not."""
        return True

    @abstractmethod
    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """The core's decision on each candidate; model calls on the way go into `trace`."""

    async def adecide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """`decide` without blocking the event loop."""
        return await run_in_executor(None, self.decide, query, candidates, trace)

    def candidates(self, documents: Sequence[Document]) -> list[Candidate]:
        """The documents as the core sees them."""
        return to_candidates(documents)

    def select(self, documents: Sequence[Document], query: str) -> Selection:
        """Each document, kept or dropped, with its score and the reason."""
        return self.decide(query, self.candidates(documents), Trace(query))

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Copies of the documents that are worth keeping, best first."""
        return self.invoke({"query": query, "documents": list(documents)}, {"callbacks": callbacks})

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """`compress_documents` without blocking the event loop."""
        return await self.ainvoke({"query": query, "documents": list(documents)}, {"callbacks": callbacks})

    def as_runnable(self) -> RunnableSerializable[CompressorInput, list[Document]]:
        """Itself: it takes `{"query", "documents"}` and gives documents."""
        return self

    def invoke(
        self, input: CompressorInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Copies of the documents that are worth keeping, best first."""
        return self._call_with_config(self._compress, input, config, **kwargs)

    async def ainvoke(
        self, input: CompressorInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """`invoke` without blocking the event loop."""
        return await self._acall_with_config(self._acompress, input, config, **kwargs)

    def _compress(self, input: CompressorInput) -> list[Document]:
        candidates = self.candidates(input["documents"])
        trace = Trace(input["query"], observer=observe)
        with trace.stage(self.get_name()) as stage:
            stage.outcome = selection = self.decide(input["query"], candidates, trace)
        return kept_documents(selection, input["documents"], candidates)

    async def _acompress(self, input: CompressorInput) -> list[Document]:
        candidates = self.candidates(input["documents"])
        async with observing() as observer:
            trace = Trace(input["query"], observer=observer)
            with trace.stage(self.get_name()) as stage:
                stage.outcome = selection = await self.adecide(input["query"], candidates, trace)
        return kept_documents(selection, input["documents"], candidates)


class RerankCompressor(PreciseCompressor):
    """Scores documents against the query and puts the best first.

    reranker: "packaged", "cascade" (better, slower), any other name that `load_reranker` takes, or an
    object of one's own.
    top_n: how many are kept, all by default. score_scale: what the scores of another LangChain
    compressor mean, where that is the reranker.
    """

    reranker: Any = "packaged"
    top_n: int | None = Field(default=None, ge=1)
    score_scale: ScoreScale | None = None

    _reranker: Reranker = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Load the reranker now rather than in the first request."""
        self._reranker = load_reranker(self.reranker, score_scale=self.score_scale)

    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """The best `top_n` candidates are kept."""
        ranked = rerank(query, candidates, self._reranker)
        n_kept = len(ranked) if self.top_n is None else self.top_n
        return Selection.of(
            (c, rank <= n_kept, f"rank {rank} of {len(ranked)} by {self._reranker.name}")
            for rank, c in enumerate(ranked, start=1)
        )


class GradientSelectionCompressor(PreciseCompressor):
    """Keeps documents up to the first sharp drop of the score (SAGE, section V).

    reranker: gives the scores to cut on: "packaged", "cascade", another name that `load_reranker` takes, or
    an object of one's own. It is not asked where the documents carry scores to cut on already,
    because one of our components reranked them or `score_scale` says what their
    `relevance_score` means. None: never rerank. The other fields are those of `GradientSelector`.
    """

    reranker: Any = "packaged"
    score_scale: ScoreScale | None = None
    min_k: int = _SELECTOR.min_k
    ratio: float = _SELECTOR.ratio
    max_k: int | None = _SELECTOR.max_k
    max_tokens: int | None = _SELECTOR.max_tokens
    floor: float | None = _SELECTOR.floor
    min_keep: int = _SELECTOR.min_keep
    min_gap: float = _SELECTOR.min_gap
    count_tokens: Callable[[str], int] | None = Field(default=_SELECTOR.count_tokens, exclude=True)
    assume_ratio: bool = _SELECTOR.assume_ratio

    _reranker: Reranker | None = PrivateAttr(None)

    def model_post_init(self, context: Any) -> None:
        """Check the options and load the reranker now rather than in the first request."""
        self.selector()
        self._reranker = None if self.reranker is None else load_reranker(self.reranker)

    def selector(self) -> GradientSelector:
        """The core's selector with these settings."""
        return GradientSelector(
            min_k=self.min_k,
            ratio=self.ratio,
            max_k=self.max_k,
            max_tokens=self.max_tokens,
            floor=self.floor,
            min_keep=self.min_keep,
            min_gap=self.min_gap,
            count_tokens=self.count_tokens,
            assume_ratio=self.assume_ratio,
        )

    def candidates(self, documents: Sequence[Document]) -> list[Candidate]:
        """The documents as the core sees them, their scores on `score_scale`."""
        return to_candidates(documents, self.score_scale)

    def rank(self, query: str, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates with scores to cut on, best first."""
        if self._reranker is None or self.score_scale is not None or _calibrated(candidates):
            return list(candidates)
        return rerank(query, candidates, self._reranker)

    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """The candidates before the first sharp drop are kept."""
        return self.selector().select(self.rank(query, candidates))


class RedundancyCompressor(PreciseCompressor):
    """Drops documents that repeat a better one (ChunkRAG, section 3).

    encoder: what tells paraphrases from mere likeness: a name, an object of the core's, or
    LangChain embeddings; without one only nearly the same words count as a repetition. The other
    fields are those of `RedundancyFilter`. Without scores, the earlier document is the better one.
    """

    threshold: float = _REDUNDANCY.threshold
    prefilter: float = _REDUNDANCY.prefilter
    encoder: Any = None

    _filter: RedundancyFilter = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the options and load the encoder now rather than in the first request."""
        self._filter = RedundancyFilter(
            threshold=self.threshold,
            prefilter=self.prefilter,
            encoder=None if self.encoder is None else load_encoder(self.encoder),
        )

    def decide(self, query: str, candidates: Sequence[Candidate], trace: Trace) -> Selection:
        """The candidates that repeat no better one are kept."""
        return self._filter.filter(candidates)


def _calibrated(candidates: Sequence[Candidate]) -> bool:
    return all(candidate.score_scale in ("probability", "logit") for candidate in candidates)
