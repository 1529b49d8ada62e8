"""The plan of an evaluation: named pipelines and their settings, read from a TOML file.

    baseline = "LangChain"                      # the pipeline to compare with; default: the first

    [pipelines.LangChain]
    split = { name = "langchain-recursive", chunk_size = 200 }
    search = "dense"    # "bm25", "hybrid", or a search of your own, see `units.SEARCHES`

    [pipelines."precise-rag"]
    index = { kind = "hybrid" }                 # an index of `precise_rag.index`, with its options
    search_options = { returns = "sentence" }   # options of that index's search
    rerank = "default"                          # `PreciseRAG`'s default, or a name for `load_reranker`
    redundancy = { threshold = 0.9 }            # options of RedundancyFilter
    relevance = { batch_size = 10 }             # options of RelevanceFilter; needs a language model
    select = { min_k = 7, ratio = 0.3 }         # options of GradientSelector, or "default"
    feedback = { max_rounds = 3 }               # options of FeedbackController; needs a language model

    [pipelines."as it comes"]
    preset = "precise"                          # a preset of `PreciseRAG`, with its index and stages
    index = { alpha = 1.0 }                     # options of that index
    redundancy = false                          # leaves a stage out; so do relevance and evidence

A pipeline has either `split` (any splitter, with plain search over its units), `index`, or `preset`. All
other parts are optional; a preset brings its own. `evidence` is the growth
of sentences, which only presets have. `top_k` (default 100,
or the preset's) is the number of candidates to search for.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from precise_rag.candidate_filters import RedundancyFilter, RelevanceFilter
from precise_rag.documents import read_text
from precise_rag.errors import InputError
from precise_rag.evaluation.splitters import OWN_SPLITTERS
from precise_rag.evaluation.units import MODEL_SEARCHES, SEARCHES, SearchKind
from precise_rag.presets import load_preset
from precise_rag.selection import GradientSelector

INDEXES = {
    "dense": "DenseIndex",
    "sentence-context": "SentenceContextIndex",
    "word-sentence": "WordSentenceIndex",
    "hybrid": "HybridIndex",
}
"""Index kinds of a plan file to class names of `precise_rag.index`."""

DEFAULT_PLAN = Path(__file__).with_name("pipelines.toml")
"""The packaged plan file, the default of `precise eval`."""


@dataclass(frozen=True, kw_only=True)
class PipelineSettings:
    """The settings of one named pipeline, with the keys of the plan file (see the module)."""

    name: str
    split: Mapping[str, Any] | None = None
    search: str = "dense"
    index: Mapping[str, Any] | None = None
    search_options: Mapping[str, Any] = field(default_factory=dict)
    rerank: str | None = None
    redundancy: Mapping[str, Any] | Literal[False] | None = None
    relevance: Mapping[str, Any] | Literal[False] | None = None
    evidence: Literal[False] | None = None
    select: Mapping[str, Any] | str | None = None
    feedback: Mapping[str, Any] | None = None
    preset: str | None = None
    top_k: int | None = None

    def __post_init__(self) -> None:
        kind = None if self.index is None else self.index.get("kind")
        own_index = self.index is not None and (self.preset is None or kind is not None)
        if (self.split is not None) + own_index + (self.preset is not None) != 1:
            raise InputError(f'pipeline {self.name!r}: give either "split", "index" or "preset"')
        if self.split is not None and "name" not in self.split:
            raise InputError(f'pipeline {self.name!r}: "split" needs a "name"')
        if own_index and kind not in INDEXES:
            raise InputError(
                f'pipeline {self.name!r}: the "kind" of "index" must be one of '
                f"{', '.join(INDEXES)}, got {kind!r}"
            )
        if self.search not in (known := (*get_args(SearchKind), *SEARCHES, *MODEL_SEARCHES)):
            raise InputError(
                f'pipeline {self.name!r}: "search" must be one of {", ".join(known)}, got {self.search!r}'
            )
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"pipeline {self.name!r}: top_k must be at least 1, got {self.top_k}")
        if isinstance(self.select, str) and self.select != "default":
            raise InputError(
                f'pipeline {self.name!r}: "select" must be a table or "default", got {self.select!r}'
            )

    def rag_options(self) -> dict[str, Any]:
        """Return the arguments of `PreciseRAG` for the parts after the index, except feedback."""
        rest = None if self.preset is None else "default"
        made = {"redundancy": RedundancyFilter, "relevance": RelevanceFilter}
        options: dict[str, Any] = {"rewriter": rest, "reranker": self.rerank or rest}
        for name, make in made.items():
            given = getattr(self, name)
            options[name] = rest if given is None else None if given is False else make(**given)
        options |= {"evidence": rest if self.evidence is None else None, "selector": self.selector(rest)}
        if self.preset is not None:
            options["preset"] = self.preset
        if self.top_k is not None or self.preset is None:
            options["n_candidates"] = self.top_k or 100
        return options

    def selector(self, rest: str | None = None) -> Any:
        """Return the selector as an argument of `PreciseRAG`; `rest` if none is given."""
        if self.select is None or isinstance(self.select, str):
            return self.select or rest
        return GradientSelector(**self.select)

    @property
    def is_stock(self) -> bool:
        """Whether every part comes from another library."""
        own = (self.index, self.rerank, self.redundancy, self.relevance, self.select)
        return self.split is not None and self.split["name"] not in OWN_SPLITTERS and own == (None,) * 5

    @property
    def asks_model(self) -> bool:
        """Whether retrieval asks a language model."""
        preset = None if self.preset is None else load_preset(self.preset)
        own = preset is not None and any(
            make(None) is not None for make in (preset.rewriter, preset.relevance)
        )
        return own or self.search in MODEL_SEARCHES or self.relevance not in (None, False)

    @property
    def fingerprint(self) -> str:
        """Short hash of every setting that decides what is retrieved; the name is left out."""
        unset = [name for name in ("relevance", "evidence", "preset") if getattr(self, name) is None]
        hidden = ("name", "feedback", *unset)
        return fingerprint({key: v for key, v in asdict(self).items() if key not in hidden})


class Plan(NamedTuple):
    """The pipelines to compare, and the name of the one that the rest are compared with."""

    pipelines: tuple[PipelineSettings, ...]
    baseline: str


def load_plan(path: str | Path) -> Plan:
    """Read a plan file.

    Raises InputError for a file that cannot be read, unknown or contradictory settings, and a baseline
    that the file does not define.
    """
    text = read_text(Path(path))
    try:
        plan = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid TOML ({error})") from error
    known = {f.name for f in fields(PipelineSettings)}
    pipelines = []
    for name, options in plan.get("pipelines", {}).items():
        if unknown := sorted(set(options) - known):
            raise InputError(
                f"{path}: pipeline {name!r} has unknown options {', '.join(unknown)}; "
                f"expected {', '.join(sorted(known - {'name'}))}"
            )
        pipelines.append(PipelineSettings(**{**options, "name": name}))
    if not pipelines:
        raise InputError(f"{path}: no pipelines found; write a table [pipelines.NAME] for each")
    baseline = plan.get("baseline", pipelines[0].name)
    if baseline not in (names := [p.name for p in pipelines]):
        raise InputError(
            f"{path}: baseline must be one of the pipelines {', '.join(names)}, got {baseline!r}"
        )
    return Plan(tuple(pipelines), baseline)


def fingerprint(value: Any) -> str:
    """Return a short hash of plain values."""
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=6).hexdigest()
