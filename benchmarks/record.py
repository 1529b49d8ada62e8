"""Options, the cached encoder and the dated results that the benchmark commands share."""

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.tables import table
from precise_rag.encoders import DEFAULT_ENCODER, CachedEncoder, load_encoder
from precise_rag.evaluation.runs.environment import circumstances

RESULTS = Path(__file__).parent / "results"
Row = TypeVar("Row")
SAMPLE = "questions a set at most"
_KEPT_OUT = ("--work", "--vectors", "--cache", "--index")
"""Options that say where a machine keeps its files; a recorded command does without them."""
_FOLDERS = ("--data", "--model", "--cross-encoder")
"""Options that name the folder of the question sets or of a model; a recorded command says DIR."""


def new_parser(module: str, doc: str, *, data: bool = True) -> ArgumentParser:
    """Parser named after the module, with the first line of its docstring; `data` adds --data."""
    parser = ArgumentParser(prog=f"python -m {module}", description=doc.splitlines()[0])
    if data:
        parser.add_argument(
            "--data",
            metavar="DIR",
            default=os.environ.get("PRECISE_DATA"),
            help="folder of the question sets (default: PRECISE_DATA)",
        )
    return parser


def parse_arguments(module: str, doc: str, sets: str, sample: int = 300) -> ArgumentParser:
    """Parser with the options of a command that measures several sets: data, sets, sample, files, seed."""
    parser = new_parser(module, doc)
    parser.add_argument("--sets", default=sets, help="default: %(default)s")
    parser.add_argument("--sample", type=int, default=sample, help="questions a set at most (%(default)s)")
    parser.add_argument(
        "--work", type=Path, default=Path("evaluation"), help="runs and vectors (%(default)s)"
    )
    parser.add_argument(
        "--vectors", type=Path, help="vector cache (default: vectors.sqlite in the work folder)"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser


def add_characters(parser: ArgumentParser, characters: int) -> None:
    """Add --characters, for commands that read a part of each set."""
    parser.add_argument(
        "--characters", type=int, default=characters, help="of a set's documents (%(default)s)"
    )


def add_encoder(parser: ArgumentParser) -> None:
    """Add --encoder, for commands whose encoder may be changed."""
    parser.add_argument("--encoder", default=DEFAULT_ENCODER, help="any that the library loads (%(default)s)")


def cached_encoder(args: Namespace) -> CachedEncoder:
    """The encoder of --encoder, or the default one, with every vector kept in a file."""
    encoder = load_encoder(getattr(args, "encoder", DEFAULT_ENCODER))
    return CachedEncoder(encoder, args.vectors or args.work / "vectors.sqlite")


def command_line(module: str, args: Namespace, words: Sequence[str] | None = None) -> str:
    """The command that repeats this run: the arguments given, without the folders of this machine.

    words: the arguments; default: those of the process.
    """
    given = iter(sys.argv[1:] if words is None else words)
    kept = [f"python -m {module}"]
    for word in given:
        option, equals, _ = word.partition("=")
        if option in (*_KEPT_OUT, *_FOLDERS):
            if not equals:
                next(given, None)
            if option in _FOLDERS:
                kept.append(f"{option} DIR")
        else:
            kept.append(shlex.quote(word))
    if hasattr(args, "data") and "--data DIR" not in kept:
        kept.append("--data DIR")
    return " ".join(kept)


def made(module: str, args: Namespace, **facts: Any) -> dict[str, Any]:
    """How a result was made: command, date, versions, machine, seed, size of the sample, and `facts`."""
    sample = {SAMPLE: args.sample} if hasattr(args, "sample") else {}
    record = {"command": command_line(module, args), **sample, **circumstances(getattr(args, "seed", 0))}
    return {**record, **facts}


def save(name: str, made: dict[str, Any], markdown: str) -> Path:
    """Write a result to benchmarks/results/<name>-<date>.md, print it, and return its path.

    markdown: begins with a title line; how the result was made is put below it.
    """
    path = RESULTS / f"{name}-{made['date']}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    title, _, body = markdown.partition("\n")
    text = f"{title}\n\n{_head(made)}\n\n{body.strip()}\n"
    path.write_text(text, encoding="utf-8")
    print(text)
    return path


def save_rows(
    module: str,
    args: Namespace,
    name: str,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    doc: str | None = "",
    form: str = ",.1f",
    also: str = "",
    **facts: Any,
) -> Path:
    """Save rows as a table; see `save`.

    doc: docstring whose text goes above the table. form: of
    numbers in the table. also: text below it.
    """
    parts = (f"# {title}", about(doc), table(rows, form), also)
    return save(name, made(module, args, **facts), "\n\n".join(filter(None, parts)))


def printed(rows: Iterable[Row]) -> list[Row]:
    """The rows as a list; each is printed as soon as it is there."""
    found = []
    for row in rows:
        found.append(row)
        print(row, flush=True)
    return found


def about(doc: str | None) -> str:
    """The text of a module's docstring below its first line and its commands."""
    return (doc or "").split("\n\n", 2)[-1].strip()


def _head(made: dict[str, Any]) -> str:
    sample = f", at most {made[SAMPLE]} questions a set" if SAMPLE in made else ""
    libraries = ", ".join(f"{library} {number}" for library, number in made["libraries"].items())
    return (
        f"`{made['command']}`, {made['date']}: {made['machine']}, Python {made['python']}, "
        f"seed {made['seed']}{sample}; {libraries}."
    )
