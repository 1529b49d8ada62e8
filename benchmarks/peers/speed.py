"""Quality and speed side by side: every pipeline of the peers' plan on the same text, one process each.

    python -m benchmarks.peers.speed --data DIR

Whole documents of one set in seeded order up to --kilobytes, and the questions about them. The encoder is
the real one, without a cache. Times are CPU times of the process with all its threads, so that other work
on the machine does not count; loading models is not counted. Writes
benchmarks/peers/results/speed-<date>.md and .json.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.compare import unseen
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.evaluation import Dataset, load_development_set
from precise_rag.evaluation.peers.splitters import load_peer_splitter
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.evaluation.runs.environment import peak_mb
from precise_rag.evaluation.runs.measurer import Measurer
from precise_rag.evaluation.runs.pipeline import Pipeline
from precise_rag.evaluation.runs.plan import PipelineSettings, load_plan
from precise_rag.evaluation.runs.run import Piece, Run
from precise_rag.types import Document, Selection

_LEGEND = """\
One thread; all times are CPU times, models loaded before. Cutting: text to chunks (pipelines without a
figure cut nothing, they index sentences). Build: text to a searchable index, cutting and encoding included. A
question: the median, its encoding included. Recall: evidence (%) among the first 400 and 1,600 tokens. Peak
memory is the whole process, Python, torch and the encoder included.
"""

ONE = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {"TOKENIZERS_PARALLELISM": "false"}
"""One thread, so that CPU time is work and not waiting."""

OURS = (
    PipelineSettings(name="precise segments, sage-minilm", split={"name": "precise", "model": "sage-minilm"}),
    PipelineSettings(name="precise greedy (ChunkRAG)", split={"name": "precise-greedy"}),
)
"""Pipelines beyond the peers' plan."""


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--set", default="squad", help="documents and questions (default: %(default)s)")
    parser.add_argument("--kilobytes", type=int, default=200)
    parser.add_argument("--sample", type=int, default=100, help="questions at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    pipelines = {p.name: p for p in plan()}
    if args.one:
        print(json.dumps(measure(pipelines[args.one], args)))
        return
    results: dict[str, dict[str, Any] | None] = {}
    for name in pipelines:
        command = [sys.executable, "-m", __spec__.name, "--one", name]
        for option in ("data", "set", "kilobytes", "sample", "seed"):
            command += [f"--{option}", str(getattr(args, option))]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **ONE})
        results[name] = json.loads(done.stdout.splitlines()[-1]) if not done.returncode else None
        print(name, results[name] or done.stderr.strip().splitlines()[-1], flush=True)
    save(results, args)


def plan() -> list[PipelineSettings]:
    """Pipelines of the peers' plan that ask no language model, and our other splitters."""
    peers = load_plan(Path(__file__).with_name("pipelines.toml")).pipelines
    return [*(p for p in peers if not p.asks_model), *OURS]


def measure(settings: PipelineSettings, args: argparse.Namespace) -> dict[str, Any]:
    """Quality, CPU seconds and peak memory of one pipeline, in this process."""
    warnings.simplefilter("ignore")
    dataset = draw(unseen(load_development_set(args.set, args.data).with_evidence()), args)
    encoder = load_encoder(DEFAULT_ENCODER, device="cpu")
    first = dataset.documents[0]
    warm = Pipeline(settings, [replace(first, text=first.text[:3000])], encoder)
    warm.retrieve("Is this the first question?")
    cutting, n_cut = None, None
    if settings.split is not None:
        options = dict(settings.split)
        split = load_peer_splitter(options.pop("name"), encoder, **options)
        split(Document("warm-up", first.text[:3000]))
        started = time.process_time()
        n_cut = sum(len(split(document)) for document in dataset.documents)
        cutting = time.process_time() - started
    started = time.process_time()
    pipeline = Pipeline(settings, dataset.documents, encoder)
    building = time.process_time() - started
    pipeline.retrieve("Is this the first question?")
    found, spent = {}, []
    for question in dataset.questions:
        started = time.process_time()
        found[question.id] = pipeline.retrieve(question.text)
        spent.append(1000 * (time.process_time() - started))
    measurer = Measurer(dataset, (400, 1600))
    values = measurer.measure(as_run(settings, found)).values
    return {
        "recall@400": round(float(values["recall@400"].mean()), 4),
        "recall@1600": round(float(values["recall@1600"].mean()), 4),
        "tokens": round(float(values["tokens"].mean())),
        "bytes": sum(len(document.text.encode()) for document in dataset.documents),
        "questions": len(dataset.questions),
        "cut_seconds": None if cutting is None else round(cutting, 4),
        "build_seconds": round(building, 3),
        "ms": round(float(np.median(spent)), 2),
        "units": n_cut or pipeline.n_units,
        "peak_mb": round(peak_mb()),
    }


def draw(dataset: Dataset, args: argparse.Namespace) -> Dataset:
    """Documents with questions, in seeded order up to --kilobytes, and their questions."""
    asked = {place.doc_id for question in dataset.questions for place in question.evidence}
    documents = [document for document in dataset.documents if document.id in asked]
    order = np.random.default_rng(args.seed).permutation(len(documents)).tolist()
    sizes = np.cumsum([len(documents[row].text.encode()) for row in order])
    n_kept = max(1, int(np.searchsorted(sizes, 1000 * args.kilobytes, side="right")))
    kept = dataset.restrict([documents[row].id for row in order[:n_kept]])
    return kept.sample(args.sample, args.seed)


def as_run(settings: PipelineSettings, found: dict[str, Selection]) -> Run:
    """The candidates found as a run that can be measured."""
    pieces = {
        name: tuple(Piece(c.doc_id, c.start, c.end, c.score, kept) for _, c, kept, _ in selection.decisions)
        for name, selection in found.items()
    }
    return Run(settings, Path(), {}, pieces, {}, dict.fromkeys(found, 0.0))


def save(results: dict[str, dict[str, Any] | None], args: argparse.Namespace) -> None:
    known = {name: one for name, one in results.items() if one}
    body = [
        [
            name,
            f"{100 * one['recall@400']:.1f}",
            f"{100 * one['recall@1600']:.1f}",
            f"{one['tokens']:,}",
            "" if one["cut_seconds"] is None else f"{one['bytes'] / 1e6 / max(one['cut_seconds'], 1e-6):.3f}",
            f"{one['build_seconds']:.1f}",
            f"{one['ms']:.1f}",
            f"{one['units']:,}",
            f"{one['peak_mb']:,}",
        ]
        for name, one in known.items()
    ]
    header = ["pipeline", "recall@400", "recall@1600", "tokens kept"]
    header += ["cutting, MB/s", "build, s", "a question, ms", "units", "peak MB"]
    size = next(iter(known.values()))
    text = [
        "# Quality and speed of the peers",
        f"{args.set}, {size['bytes'] / 1e6:.2f} MB, {size['questions']} questions; {DEFAULT_ENCODER} on the "
        "CPU for all.",
        _LEGEND.strip(),
        format_markdown(header, body),
        *(f"{name} did not run." for name, one in results.items() if not one),
    ]
    made = record.made(__spec__.name, args)
    record.save("peers", "speed", made, "\n\n".join(text), {"results": results})


if __name__ == "__main__":
    main()
