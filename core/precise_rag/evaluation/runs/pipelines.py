"""Named pipelines from a TOML file, and how each is put together.

    baseline = "LangChain"                      # what the others are compared with; default: the first

    [pipelines.LangChain]
    split = { name = "langchain-recursive", chunk_size = 200 }
    search = "dense"    # "bm25", "hybrid", "langchain-ensemble", "langchain-filter", "llamaindex-llm-rerank"

    [pipelines."precise-rag"]
    index = { kind = "hybrid" }                 # any of `precise_rag.index`, with its options
    search_options = { returns = "sentence" }   # of that index's search
    rerank = "default"                          # as `PreciseRAG` does, or any name for `load_reranker`
    redundancy = { threshold = 0.9 }            # options of RedundancyFilter
    relevance = { batch_size = 10 }             # options of RelevanceFilter; with a language model
    select = { min_k = 7, ratio = 0.3 }         # options of GradientSelector
    feedback = { max_rounds = 3 }               # options of FeedbackController; with a language model

A pipeline has either `split` (text cut by any splitter, searched plainly) or `index`; the other
parts may be left out. `top_k` (default 100) is how many candidates are searched for. A language
model is also needed for "llamaindex-llm-rerank".
"""

import json
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import precise_rag.index
from precise_rag.errors import InputError
from precise_rag.evaluation.peers.searches import LangChainEnsemble, LangChainFilter, LlamaIndexLLMRerank
from precise_rag.evaluation.peers.splitters import OWN_SPLITTERS, load_peer_splitter
from precise_rag.evaluation.peers.units import SearchKind, UnitIndex
from precise_rag.evaluation.runs.memory import resident_mb
from precise_rag.evaluation.runs.metered import MeteredLLM, Spent
from precise_rag.filtering import RedundancyFilter, RelevanceFilter
from precise_rag.protocols import LLM, Encoder
from precise_rag.rerank import default_reranker, load_reranker, rerank
from precise_rag.selection import GradientSelector
from precise_rag.types import Candidate, Document, Selection

_INDEXES = {
    "dense": "DenseIndex",
    "bm25": "BM25Index",
    "sentence-context": "SentenceContextIndex",
    "word-sentence": "WordSentenceIndex",
    "hybrid": "HybridIndex",
}

_STOCK_SEARCHES = {"langchain-ensemble": LangChainEnsemble, "langchain-filter": LangChainFilter}

_LLM_SEARCHES = {"llamaindex-llm-rerank": LlamaIndexLLMRerank}

DEFAULT_PLAN = Path(__file__).with_name("pipelines.toml")
"""The pipelines compared when the user names none."""

Search = Callable[[str, int], Sequence[Candidate]]


@dataclass(frozen=True, kw_only=True)
class PipelineSettings:
    """One named pipeline, as in the TOML file."""

    name: str
    split: Mapping[str, Any] | None = None
    search: str = "dense"
    index: Mapping[str, Any] | None = None
    search_options: Mapping[str, Any] = field(default_factory=dict)
    rerank: str | None = None
    redundancy: Mapping[str, Any] | None = None
    relevance: Mapping[str, Any] | None = None
    select: Mapping[str, Any] | None = None
    feedback: Mapping[str, Any] | None = None
    top_k: int = 100

    def __post_init__(self) -> None:
        if (self.split is None) == (self.index is None):
            raise InputError(f'pipeline {self.name!r}: give either "split" or "index"')
        if self.split is not None and "name" not in self.split:
            raise InputError(f'pipeline {self.name!r}: "split" needs a "name"')
        if self.index is not None and self.index.get("kind") not in _INDEXES:
            raise InputError(f'pipeline {self.name!r}: the "kind" of "index" is one of {", ".join(_INDEXES)}')
        if self.search not in (known := (*get_args(SearchKind), *_STOCK_SEARCHES, *_LLM_SEARCHES)):
            raise InputError(f'pipeline {self.name!r}: "search" is one of {", ".join(known)}')
        if self.top_k < 1:
            raise InputError(f"pipeline {self.name!r}: top_k is {self.top_k}; it must be at least 1")

    @property
    def is_stock(self) -> bool:
        """Whether it is other libraries' parts alone."""
        own = (self.index, self.rerank, self.redundancy, self.relevance, self.select)
        return self.split is not None and self.split["name"] not in OWN_SPLITTERS and own == (None,) * 5

    @property
    def asks_model(self) -> bool:
        """Whether retrieving asks a language model."""
        return self.search in _LLM_SEARCHES or self.relevance is not None

    @property
    def fingerprint(self) -> str:
        """A short hash of everything that decides what is retrieved; the name is not in it."""
        hidden = ("name", "feedback", *(("relevance",) if self.relevance is None else ()))
        return fingerprint({key: v for key, v in asdict(self).items() if key not in hidden})


class Plan(NamedTuple):
    """The pipelines to be compared, and the name of the one to compare with."""

    pipelines: tuple[PipelineSettings, ...]
    baseline: str


class Built(NamedTuple):
    """An index and what it took.

    seconds: for cutting the text ("cut", where a splitter is named) and for all of building ("build").
    memory_mb: by how much the process grew meanwhile; None where the system does not tell.
    """

    index: Any
    seconds: dict[str, float]
    memory_mb: float | None


class Pipeline:
    """Retrieval put together from its settings: search, rerank, drop repetitions, select.

    indexes: those built before over the same documents, by what they were built from; pipelines that
    differ in what comes after the search share one. Raises InputError if a part asks a language model
    and none is given.
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
            raise InputError("it asks a language model; name one (--llm MODEL)")
        self._meter = MeteredLLM(llm) if llm is not None and settings.asks_model else None
        self.built = self._build(settings, documents, encoder, {} if indexes is None else indexes)
        self.n_units = len(self.built.index)
        self._search: Search = partial(self.built.index.search, **settings.search_options)
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
        """Every candidate that repeats no other, best first, kept or dropped."""
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

    def take_spent(self) -> Spent | None:
        """What retrieving has spent on a language model since the last time; None if it asks none."""
        return None if self._meter is None else self._meter.take()

    def _build(
        self,
        settings: PipelineSettings,
        documents: Sequence[Document],
        encoder: Encoder,
        indexes: dict[str, Built],
    ) -> Built:
        if settings.search in _LLM_SEARCHES:
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
        if settings.index is not None:
            options = dict(settings.index)
            kind = getattr(precise_rag.index, _INDEXES[options.pop("kind")])
            index = kind.build(documents, encoder, **options)
            index.search("What is prepared at the first search?", 1)
            return index
        assert settings.split is not None
        options = dict(settings.split)
        split = load_peer_splitter(options.pop("name"), encoder, **options)
        started = time.perf_counter()
        units = [unit for document in documents for unit in split(document)]
        seconds["cut"] = time.perf_counter() - started
        if settings.search in _LLM_SEARCHES:
            assert self._meter is not None
            return _LLM_SEARCHES[settings.search](documents, units, encoder, self._meter)
        if settings.search in _STOCK_SEARCHES:
            return _STOCK_SEARCHES[settings.search](documents, units, encoder)
        return UnitIndex(documents, units, encoder, cast(SearchKind, settings.search))


def _measured(make: Callable[[dict[str, float]], Any]) -> Built:
    before, started, seconds = resident_mb(), time.perf_counter(), dict[str, float]()
    index = make(seconds)
    seconds["build"] = time.perf_counter() - started
    after = resident_mb()
    grown = None if before is None or after is None else round(max(0.0, after - before), 1)
    return Built(index, seconds, grown)


def load_plan(path: str | Path) -> Plan:
    """The pipelines of a TOML file. Raises InputError for anything that is not understood."""
    try:
        plan = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML ({error})") from error
    known = {f.name for f in fields(PipelineSettings)}
    pipelines = []
    for name, options in plan.get("pipelines", {}).items():
        if unknown := sorted(set(options) - known):
            raise InputError(f"{path}: pipeline {name!r} has unknown options {', '.join(unknown)}")
        pipelines.append(PipelineSettings(**{**options, "name": name}))
    if not pipelines:
        raise InputError(f"{path}: names no pipelines; write a table [pipelines.NAME] for each")
    baseline = plan.get("baseline", pipelines[0].name)
    if baseline not in {p.name for p in pipelines}:
        raise InputError(f"{path}: the baseline {baseline!r} is not among the pipelines")
    return Plan(tuple(pipelines), baseline)


def fingerprint(value: Any) -> str:
    """A short hash of plain values."""
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=6).hexdigest()
