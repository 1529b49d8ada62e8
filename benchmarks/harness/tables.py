"""Results as Markdown: the options that commands share, tables, and the page that a command writes."""

import os
import platform
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.harness.cache import CachedEncoder
from benchmarks.harness.statistics import Interval
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder

RESULTS = Path(__file__).parents[1] / "results"
LIBRARIES = (
    "precise-rag", "numpy", "torch", "sentence-transformers", "langchain-text-splitters", "langchain-classic",
    "langchain-experimental", "llama-index-core", "chonkie", "semchunk", "bm25s", "ir-measures", "scipy",
)  # fmt: skip
"""Distributions whose versions are written into results."""
FOLDERS = ("--data", "--vectors", "--cache")
"""Options that say where a machine keeps its files; a recorded command does without them."""


def new_parser(module: str, doc: str) -> ArgumentParser:
    """Parser named after the module, with the first line of its docstring, --data and --seed."""
    parser = ArgumentParser(prog=f"python -m {module}", description=doc.splitlines()[0])
    data = os.environ.get("PRECISE_DATA")
    parser.add_argument(
        "--data", metavar="DIR", default=data, help="the question sets (default: PRECISE_DATA)"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser


def sets_parser(module: str, doc: str, sets: str, sample: int | None) -> ArgumentParser:
    """Parser of a command that measures several sets: also --sets, --sample, --encoder and --vectors.

    sample: default of --sample; None: no such option.
    """
    parser = new_parser(module, doc)
    parser.add_argument("--sets", default=sets, help="default: %(default)s")
    if sample is not None:
        parser.add_argument(
            "--sample", type=int, default=sample, help="questions a set at most (%(default)s)"
        )
    parser.add_argument("--encoder", default=DEFAULT_ENCODER, help="any that the library loads (%(default)s)")
    parser.add_argument(
        "--vectors", type=Path, default=Path("evaluation/vectors.sqlite"), help="(%(default)s)"
    )
    return parser


def cached_encoder(args: Namespace) -> CachedEncoder:
    """The encoder of --encoder, with every vector kept in the file of --vectors."""
    return CachedEncoder(load_encoder(args.encoder), args.vectors)


def save(name: str, module: str, args: Namespace, title: str, *parts: str) -> Path:
    """Write results/<name>-<date>.md, print it, and return its path; below the title: how it was made."""
    sample = f", at most {args.sample} questions a set" if hasattr(args, "sample") else ""
    date = datetime.now(UTC).date().isoformat()
    versions = ", ".join(f"{name} {number}" for name in LIBRARIES if (number := _version(name)))
    made = (
        f"`{command_line(module, sys.argv[1:])}`, {date}: {platform.machine()}, {os.cpu_count()} CPU cores, "
        f"Python {platform.python_version()}, seed {args.seed}{sample}; {versions}."
    )
    path = RESULTS / f"{name}-{date}.md"
    path.write_text("\n\n".join([f"# {title}", made, *filter(None, parts)]) + "\n", encoding="utf-8")
    print(path.read_text("utf-8"))
    return path


def command_line(module: str, arguments: Sequence[str]) -> str:
    """The command that repeats a run, without the folders of this machine."""
    kept, rest = [f"python -m {module} --data DIR"], iter(arguments)
    for word in rest:
        option, equals, _ = word.partition("=")
        if option not in FOLDERS:
            kept.append(shlex.quote(word))
        elif not equals:
            next(rest)
    return " ".join(kept)


def about(doc: str | None) -> str:
    """The text of a module's docstring below its first line and its commands."""
    return (doc or "").split("\n\n", 2)[-1].strip()


def table(rows: Sequence[Mapping[str, Any]], form: str = ",.1f") -> str:
    """The rows as a table, whose columns are their keys. form: of numbers that are not whole."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    body = [[cell(row.get(name, ""), form) for name in columns] for row in rows]
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value: Any, form: str = ",.1f") -> str:
    """A value as text: an interval as a signed mean with its bounds, NaN as a dash."""
    if isinstance(value, Interval):
        return f"{value.mean:+{form}} ({value.low:+{form}} to {value.high:+{form}})"
    if isinstance(value, float):
        return "–" if value != value else f"{value:{form}}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
