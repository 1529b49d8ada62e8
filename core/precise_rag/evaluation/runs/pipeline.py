"""A pipeline built from its settings: an index and the steps after the search."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import precise_rag.index
from precise_rag.errors import InputError
from precise_rag.evaluation.peers.searches import LLM_SEARCHES, STOCK_SEARCHES
from precise_rag.evaluation.peers.splitters import load_peer_splitter
from precise_rag.evaluation.peers.units import SearchKind, UnitIndex
from precise_rag.evaluation.runs.environment import resident_mb
from precise_rag.evaluation.runs.metered import MeteredLLM
from precise_rag.evaluation.runs.plan import INDEXES, PipelineSettings, fingerprint
from precise_rag.filtering import RedundancyFilter, RelevanceFilter
from precise_rag.protocols import LLM, Encoder
from precise_rag.rerank import default_reranker, load_reranker, rerank
from precise_rag.selection import GradientSelector
from precise_rag.trace import Bill
from precise_rag.types import Document, Selection


class Built(NamedTuple):
    """An index with the time and memory that building it took.

    seconds: "cut" (splitting the text; only for pipelines with a splitter) and "build" (everything).
    memory_mb: growth of the process in MiB; None where the system does not report it.
    """

    index: Any
    seconds: dict[str, float]
    memory_mb: float | None


class Pipeline:
    """Retrieval with the steps of one PipelineSettings: search, rerank, filter, select.

    documents: the collection to index.
    encoder: the encoder of every part.
    llm: the language model for searches and filters that ask one.
    indexes: indexes already built over the same documents with the same encoder; pipelines that differ
        only after the search share one. New indexes are added to it.

    Raises InputError if a part asks a language model and `llm` is None.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        documents: Sequence[Document],
        encoder: Encoder,
        llm: LLM | None = None,
        indexes: dict[str, Built] | None = None,
    ) -> None:
        if settings.asks_model and llm is None:
            raise InputError(f"pipeline {settings.name!r} asks a language model; name one (--llm MODEL)")
        self._meter = MeteredLLM(llm) if llm is not None and settings.asks_model else None
        self.built = self._build(settings, documents, encoder, {} if indexes is None else indexes)
        self.n_units = len(self.built.index)
        self._search = partial(self.built.index.search, **settings.search_options)
        self._top_k = settings.top_k
        self._reranker = None
        if settings.rerank is not None:
            by_name = settings.rerank != "default"
            self._reranker = load_reranker(settings.rerank) if by_name else default_reranker(encoder)
        self._redundancy = None if settings.redundancy is None else RedundancyFilter(**settings.redundancy)
        self._relevance = (
            None if settings.relevance is None else RelevanceFilter(self._meter, **settings.relevance)
        )
        self._selector = None if settings.select is None else GradientSelector(**settings.select)

    def retrieve(self, question: str) -> Selection:
        """Return the candidates that passed the filters, best first, each kept or dropped."""
        found = self._search(question, self._top_k)
        if self._reranker is not None:
            found = rerank(question, found, self._reranker)
        if self._redundancy is not None:
            found = self._redundancy.filter(found).kept
        if self._relevance is not None:
            found = self._relevance.filter(question, found).kept
        if self._selector is not None:
            return self._selector.select(found)
        return Selection.keep_all(found, "found")

    def take_spent(self) -> Bill | None:
        """Return what retrieval spent on the language model since the last call; None if it asks none."""
        return None if self._meter is None else self._meter.take()

    def _build(
        self,
        settings: PipelineSettings,
        documents: Sequence[Document],
        encoder: Encoder,
        indexes: dict[str, Built],
    ) -> Built:
        if settings.search in LLM_SEARCHES:
            return _measured(partial(self._index, settings, documents, encoder))
        key = fingerprint([settings.split, settings.search, settings.index])
        if key not in indexes:
            indexes[key] = _measured(partial(self._index, settings, documents, encoder))
        return indexes[key]

    def _index(
        self,
        settings: PipelineSettings,
        documents: Sequence[Document],
        encoder: Encoder,
        seconds: dict[str, float],
    ) -> Any:
        """Build the index; the seconds of splitting go into `seconds`."""
        if settings.index is not None:
            options = dict(settings.index)
            kind = getattr(precise_rag.index, INDEXES[options.pop("kind")])
            index = kind.build(documents, encoder, **options)
            index.search("What is prepared at the first search?", 1)
            return index
        assert settings.split is not None
        options = dict(settings.split)
        split = load_peer_splitter(options.pop("name"), encoder, **options)
        started = time.perf_counter()
        units = [unit for document in documents for unit in split(document)]
        seconds["cut"] = time.perf_counter() - started
        if settings.search in LLM_SEARCHES:
            assert self._meter is not None
            return LLM_SEARCHES[settings.search](documents, units, encoder, self._meter)
        if settings.search in STOCK_SEARCHES:
            return STOCK_SEARCHES[settings.search](documents, units, encoder)
        return UnitIndex(documents, units, encoder, cast(SearchKind, settings.search))


def _measured(make: Callable[[dict[str, float]], Any]) -> Built:
    before, started, seconds = resident_mb(), time.perf_counter(), dict[str, float]()
    index = make(seconds)
    seconds["build"] = time.perf_counter() - started
    after = resident_mb()
    grown = None if before is None or after is None else round(max(0.0, after - before), 1)
    return Built(index, seconds, grown)
