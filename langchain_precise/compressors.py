"""Document compressors: rerank documents, select them by score, drop repetitions, cut them down to evidence.

Each is a `BaseDocumentCompressor`, for ContextualCompressionRetriever and its like, and also a Runnable over
`{"query", "documents"}`, for LCEL. A part of the core decides what is kept, see `precise_rag.pipeline.parts`.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Annotated, Any, cast

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import ensure_config
from pydantic import Field, PrivateAttr, TypeAdapter, WithJsonSchema
from typing_extensions import TypedDict

from langchain_precise.convert import from_selection, shown, to_candidates
from langchain_precise.embeddings import SettingsComponent
from langchain_precise.events import observe, observing
from precise_rag.checks import own_errors
from precise_rag.encoders import load_encoder
from precise_rag.excerpts import Form
from precise_rag.llm import Budget
from precise_rag.pipeline import parts
from precise_rag.trace import Trace
from precise_rag.types import Candidate, ScoreScale, Selection


class CompressorInput(TypedDict):
    """The input of a compressor as a Runnable."""

    query: str
    documents: list[Document]


_INPUT = TypeAdapter(CompressorInput)


class SelectionCompressor(
    BaseDocumentCompressor, RunnableSerializable[Mapping[str, Any], list[Document]], SettingsComponent
):
    """Base of the compressors, which keep some documents and drop the rest.

    Kept documents are copies, best first unless they are excerpts, with the facts about them in
    `metadata["precise"]`, see `read_facts`. Every decision, on dropped documents too, is sent to the
    callbacks as a custom event.
    """

    _part: parts.SelectionPart = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings now; models of other sources are looked for at their first use."""
        self._part = self._make_part()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    @property
    def InputType(self) -> type[CompressorInput]:
        """The type of the input, for schemas. To type checkers it is any mapping, as a chain passes it on."""
        return CompressorInput

    @abstractmethod
    def _make_part(self) -> parts.SelectionPart:
        """Return the part of the core that decides what is kept."""

    def _part_for_call(self) -> parts.SelectionPart:
        """Return the part for the config of the running call."""
        return self._part

    def _candidates(self, documents: Sequence[Document]) -> list[Candidate]:
        return to_candidates(documents)

    def select(self, documents: Sequence[Document], query: str) -> Selection:
        """Return the decision on each document: kept or dropped, with its score and the reason."""
        return self._part.decide(query, self._candidates(documents), Trace(query))

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return copies of the kept documents."""
        return self.invoke({"query": query, "documents": documents}, {"callbacks": callbacks})

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Run `compress_documents` without blocking the event loop."""
        return await self.ainvoke({"query": query, "documents": documents}, {"callbacks": callbacks})

    def invoke(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return copies of the kept documents."""
        return self._call_with_config(self._compress, input, config, **kwargs)

    async def ainvoke(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Run `invoke` without blocking the event loop."""
        return await self._acall_with_config(self._acompress, input, config, **kwargs)

    def _read(self, input: Mapping[str, Any]) -> tuple[str, list[Candidate]]:
        with own_errors('the input {"query": …, "documents": […]}'):
            given = _INPUT.validate_python(input)
        return given["query"], self._candidates(given["documents"])

    def _compress(self, input: Mapping[str, Any]) -> list[Document]:
        query, candidates = self._read(input)
        trace = Trace(query, observer=observe)
        with trace.stage(self.get_name()) as stage:
            stage.outcome = selection = self._part_for_call().decide(query, candidates, trace)
        return from_selection(selection)

    async def _acompress(self, input: Mapping[str, Any]) -> list[Document]:
        query, candidates = self._read(input)
        async with observing() as observer:
            trace = Trace(query, observer=observer)
            with trace.stage(self.get_name()) as stage:
                stage.outcome = selection = await self._part_for_call().adecide(query, candidates, trace)
        return from_selection(selection)


class RerankCompressor(SelectionCompressor):
    """Compressor that scores documents against the query and returns the best.

    The scores they had are among the facts: `read_facts(document)["scores"]`.

    reranker: anything that `load_reranker` takes, such as another LangChain compressor; default: the cascade.
    top_n: how many documents to return; default: all.
    score_scale: scale of the scores if the reranker is another LangChain compressor; by default only
    its order counts.
    """

    reranker: Any = "default"
    top_n: int | None = Field(default=None, gt=0)
    score_scale: ScoreScale | None = None

    def _make_part(self) -> parts.SelectionPart:
        return parts.RerankPart.of(self)


class GradientSelectionCompressor(SelectionCompressor, parts.GradientOptions):
    """Compressor that keeps documents up to the first sharp drop of the score (SAGE, section V).

    reranker: gives the scores to cut on; None never reranks. It is not called if the documents come
    from a precise-rag reranker, or if `score_scale` is set.
    score_scale: the scale of the documents' own `relevance_score`, which is then cut on as it is.
    count_tokens: counts the tokens of a text for `max_tokens`; default: those of the default encoder.
    The other fields are those of `GradientSelector`, with share_of_best 0.25 and min_keep 1 by default.
    """

    reranker: Any = "default"
    score_scale: ScoreScale | None = None
    count_tokens: Annotated[Callable[[str], int] | None, Field(exclude=True), WithJsonSchema({})] = None

    def _make_part(self) -> parts.SelectionPart:
        return parts.GradientPart.of(self, self.model_fields_set, shown)

    def _candidates(self, documents: Sequence[Document]) -> list[Candidate]:
        return to_candidates(documents, self.score_scale)


class RedundancyCompressor(SelectionCompressor, parts.RedundancyOptions):
    """Compressor that drops documents that repeat a better one (ChunkRAG, section 3).

    Without scores, the earlier document is the better one.
    embeddings: finds repetitions by meaning: a name or path, an encoder object, or LangChain embeddings;
    by default only nearly equal wording counts.
    The other fields are those of `RedundancyFilter`.
    """

    embeddings: Any = None

    def _make_part(self) -> parts.SelectionPart:
        encoder = None if self.embeddings is None else load_encoder(self.embeddings, argument="embeddings")
        return parts.RedundancyPart.of(self, encoder)


class RelevanceFilterCompressor(SelectionCompressor, parts.RelevanceOptions):
    """Compressor that keeps documents that a language model finds relevant (ChunkRAG, section 3).

    Documents keep their own scores; the model's are in `read_facts(document)["scores"]`.

    llm: a chat model, or anything else that `load_llm` takes.
    max_concurrency: calls at a time, also on a running event loop; one in the config of a call can lower it.
    budget: limits for each query.
    The other fields are those of `RelevanceSettings`.
    """

    llm: Any = Field(repr=False)
    budget: Budget | None = None

    def _make_part(self) -> parts.SelectionPart:
        return parts.RelevancePart.of(self)

    def _part_for_call(self) -> parts.SelectionPart:
        most = min(ensure_config().get("max_concurrency") or self.max_concurrency, self.max_concurrency)
        limited = copy(cast(parts.RelevancePart, self._part).filter)
        limited.settings = replace(limited.settings, max_concurrency=most)
        return parts.RelevancePart(limited)


class EvidenceCompressor(SelectionCompressor, parts.EvidenceOptions):
    """Compressor that returns excerpts: the relevant sentences of the documents and what belongs to them.

    The sentences of all documents are reranked, grow to the neighbours that probably belong to the same
    evidence, and are kept while they are worth their tokens, see `EvidenceExtractor`. Each excerpt is a new
    document in the order of the text, with the metadata of the one it was cut from; a `start_index` there
    is that of the excerpt.

    reranker: anything that `load_reranker` takes; of one that is not ours only the order counts, see
        `LevelledReranker`. Default: the cascade.
    count_tokens: counts the tokens of a text for `max_tokens`, which holds for what `DOCUMENT_PROMPT` writes;
        default: those of the default encoder.
    The other fields are those of `ProbabilitySelector`; min_keep=0 returns nothing if nothing is relevant.
    """

    reranker: Any = "default"
    count_tokens: Annotated[Callable[[str], int] | None, Field(exclude=True), WithJsonSchema({})] = None

    def _make_part(self) -> parts.SelectionPart:
        return parts.EvidencePart.of(self, self.reranker, Form(shown))
