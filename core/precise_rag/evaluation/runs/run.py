"""Runs: the candidates that a pipeline retrieved for each question, kept in a file.

The file has a header line and one JSON line per question. Questions in the file are not retrieved
again, so an interrupted run continues where it stopped. Measures are computed from the file, so a new
measure needs no new retrieval.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import precise_rag
from precise_rag._progress import progress_bar
from precise_rag.evaluation.datasets import Dataset
from precise_rag.evaluation.runs.environment import PEER_LIBRARIES, installed_version, peak_mb
from precise_rag.evaluation.runs.lines import append_line, read_lines
from precise_rag.evaluation.runs.pipeline import Built, Pipeline
from precise_rag.evaluation.runs.plan import PipelineSettings, fingerprint
from precise_rag.protocols import LLM, Encoder
from precise_rag.trace import Bill, Trace
from precise_rag.types import ScoreScale, Selection

_MOST_TRACES = 1_000


class Piece(NamedTuple):
    """One ranked candidate of a question: its span, its score, and whether the pipeline kept it.

    A line of a run file holds these five values; the text is read from the document.
    """

    doc_id: str
    start: int
    end: int
    score: float
    kept: bool


@dataclass(frozen=True)
class Run:
    """The candidates that one pipeline retrieved for each question, with time and memory.

    settings: of the pipeline.
    path: of the run file.
    facts: encoder, version, n_units, build_seconds, cut_seconds (with a splitter), memory_mb (growth of
        the process while the index was built; None where the system does not report it) and peak_mb (of
        the process).
    pieces, scales, milliseconds: question id to its ranked candidates, their score scale, and the time
        of retrieval.
    spent: question id to the calls and tokens of retrieval; empty if no language model is asked.
    """

    settings: PipelineSettings
    path: Path
    facts: dict[str, Any]
    pieces: dict[str, tuple[Piece, ...]]
    scales: dict[str, ScoreScale]
    milliseconds: dict[str, float]
    spent: dict[str, Bill] = field(default_factory=dict)

    def trace_page(self, question_id: str) -> Path | None:
        """Return the page of a question's trace; None if it was not kept."""
        page = _trace_page(self.path, question_id)
        return page if page.is_file() else None


def run_pipeline(
    settings: PipelineSettings,
    dataset: Dataset,
    encoder: Encoder,
    folder: str | Path,
    *,
    llm: LLM | None = None,
    indexes: dict[str, Built] | None = None,
    traces: bool = False,
    show_progress: bool = False,
) -> Run:
    """Run a pipeline over the questions of a dataset, or continue its run file.

    settings: of the pipeline.
    dataset: documents and questions.
    encoder: the encoder of every part.
    folder: of the run files; created if missing.
    llm: the language model for pipelines that ask one.
    indexes: shared indexes, see `Pipeline`.
    traces: keep the page of the trace of each question, of the first 1,000; default: False.
    """
    made_by = _library_versions() if settings.is_stock else [precise_rag.__version__, _source_digest()]
    model = [llm.name] if llm is not None and settings.asks_model else []
    key = fingerprint([settings.fingerprint, _dataset_key(dataset), encoder.name, made_by, *model])
    slug = re.sub(r"\W+", "-", f"{dataset.name}-{settings.name}").strip("-").lower()
    path = Path(folder) / f"{slug}-{key}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = read_lines(path)
    done = {(line["id"], line["question"]) for line in lines[1:]}
    todo = [question for question in dataset.questions if (question.id, question.text) not in done]
    if todo:
        pipeline = Pipeline(settings, dataset.documents, encoder, llm, indexes)
        if not settings.asks_model:
            pipeline.retrieve(todo[0].text)  # loads models, so that no question is timed with it
        with path.open("a", encoding="utf-8") as file:
            if not lines:
                facts = {
                    "encoder": encoder.name,
                    "version": precise_rag.__version__,
                    "n_units": pipeline.n_units,
                    **{f"{part}_seconds": round(took, 3) for part, took in pipeline.built.seconds.items()},
                    "memory_mb": pipeline.built.memory_mb,
                    "peak_mb": peak_mb(),
                }
                lines.append({"settings": asdict(settings), "facts": facts})
                append_line(file, lines[0])
            for question in progress_bar(todo, shown=show_progress, desc=settings.name, leave=False):
                trace = Trace(question.text)
                started = time.perf_counter()
                selection = pipeline.retrieve(question.text, trace)
                elapsed = 1000 * (time.perf_counter() - started)
                if traces and len(lines) <= _MOST_TRACES:
                    page = _trace_page(path, question.id)
                    page.parent.mkdir(exist_ok=True)
                    page.write_text(trace.to_html(), encoding="utf-8", errors="backslashreplace")
                line = {"id": question.id, "question": question.text, "ms": round(elapsed, 3)}
                if spent := pipeline.take_spent():
                    line["spent"] = spent
                lines.append({**line, "scale": _scale(selection), "pieces": _pieces(selection)})
                append_line(file, lines[-1])
    return Run(
        settings,
        path,
        lines[0]["facts"],
        {line["id"]: tuple(Piece(*piece) for piece in line["pieces"]) for line in lines[1:]},
        {line["id"]: line["scale"] for line in lines[1:]},
        {line["id"]: line["ms"] for line in lines[1:]},
        {line["id"]: Bill(*line["spent"]) for line in lines[1:] if "spent" in line},
    )


def _trace_page(path: Path, question_id: str) -> Path:
    name = blake2b(question_id.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return path.with_suffix("") / f"{name}.html"


def _dataset_key(dataset: Dataset) -> str:
    digest = blake2b(digest_size=16)
    for document in dataset.documents:
        digest.update(f"{document.id}\0{document.text}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@cache
def _source_digest() -> str:
    """Hash this library's code and models, so that the runs of another version are not reused."""
    digest = blake2b(digest_size=16)
    root = Path(precise_rag.__file__).parent
    for file in sorted(root.rglob("*")):
        if file.is_file() and file.suffix != ".pyc":
            digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


def _library_versions() -> list[str]:
    return [f"{name} {installed_version(name)}" for name in PEER_LIBRARIES]


def _pieces(selection: Selection) -> Sequence[Piece]:
    return [Piece(c.doc_id, c.start, c.end, round(c.score, 6), kept) for _, c, kept, _ in selection.decisions]


def _scale(selection: Selection) -> ScoreScale:
    return selection.decisions[0].candidate.score_scale if selection.decisions else "rank"
