"""A pipeline built from its settings: an index and the steps after the search."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import precise_rag.index
from precise_rag.errors import InputError
from precise_rag.evaluation.runs.environment import resident_mb
from precise_rag.evaluation.runs.metered import MeteredLLM
from precise_rag.evaluation.runs.plan import INDEXES, PipelineSettings, fingerprint
from precise_rag.evaluation.splitters import load_splitter
from precise_rag.evaluation.units import MODEL_SEARCHES, SEARCHES, SearchKind, UnitIndex
from precise_rag.pipeline import PreciseRAG
from precise_rag.presets import load_preset
from precise_rag.protocols import LLM, Encoder
from precise_rag.trace import Bill, Trace
from precise_rag.types import Candidate, Document, Selection


class Built(NamedTuple):
    """An index with the time and memory that building it took.

    seconds: "cut" (splitting the text; only for pipelines with a splitter) and "build" (everything).
    memory_mb: growth of the process in MiB; None where the system does not report it.
    """

    index: Any
    seconds: dict[str, float]
    memory_mb: float | None


class _Source(NamedTuple):
    """An index that is searched with options."""

    index: Any
    encoder: Encoder
    options: Mapping[str, Any]

    def search(self, query: str, top_k: int) -> list[Candidate]:
        candidates: list[Candidate] = self.index.search(query, top_k, **self.options)
        return candidates


class Pipeline:
    """Retrieval with the parts of one PipelineSettings, by `PreciseRAG`.

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
        source = self.built.index
        if settings.preset is None:
            source = _Source(source, encoder, settings.search_options)
        self._rag = PreciseRAG(source, self._meter, feedback=None, **settings.rag_options())

    def retrieve(self, question: str, trace: Trace | None = None) -> Selection:
        """Return the candidates that passed the filters, best first, each kept or dropped.

        trace: record to add to; default: a new one.
        """
        trace = trace or Trace(question)
        selection = self._rag.retrieve(question, trace=trace)
        *before, _ = trace.stages
        filtered = {candidate.id for stage in before for candidate in stage.selection.dropped}
        decisions = (d for d in selection.decisions if d.candidate.id not in filtered)
        return Selection.of((d.candidate, d.kept, d.reason) for d in decisions)

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
        if settings.search in MODEL_SEARCHES:
            return _measured(partial(self._index, settings, documents, encoder))
        key = fingerprint([settings.split, settings.search, settings.index, settings.preset])
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
        if settings.preset is not None:
            preset = load_preset(settings.preset)
            options = {**preset.index_options(encoder), **(settings.index or {})}
            return preset.index(documents, encoder, **options)
        if settings.index is not None:
            options = dict(settings.index)
            kind = getattr(precise_rag.index, INDEXES[options.pop("kind")])
            index = kind.build(documents, encoder, **options)
            index.search("What is prepared at the first search?", 1)
            return index
        assert settings.split is not None
        options = dict(settings.split)
        split = load_splitter(options.pop("name"), encoder, **options)
        started = time.perf_counter()
        units = [unit for document in documents for unit in split(document)]
        seconds["cut"] = time.perf_counter() - started
        if settings.search in MODEL_SEARCHES:
            assert self._meter is not None
            return MODEL_SEARCHES[settings.search](documents, units, encoder, self._meter)
        if settings.search in SEARCHES:
            return SEARCHES[settings.search](documents, units, encoder)
        return UnitIndex(documents, units, encoder, cast(SearchKind, settings.search))


def _measured(make: Callable[[dict[str, float]], Any]) -> Built:
    before, started, seconds = resident_mb(), time.perf_counter(), dict[str, float]()
    index = make(seconds)
    seconds["build"] = time.perf_counter() - started
    after = resident_mb()
    grown = None if before is None or after is None else round(max(0.0, after - before), 1)
    return Built(index, seconds, grown)
