"""What the papers' commands share: arguments, the encoder, and where results go."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from precise_rag.encoders import DEFAULT_ENCODER, CachedEncoder, load_encoder
from precise_rag.evaluation.runs.evaluate import circumstances

RESULTS = Path(__file__).parents[1] / "results"


def parse_arguments(description: str, sets: str, sample: int = 300) -> argparse.ArgumentParser:
    """A parser with the options of every command."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument(
        "--data", default=os.environ.get("PRECISE_DATA"), help="folder of the development sets"
    )
    parser.add_argument("--sets", default=sets, help="default: %(default)s")
    parser.add_argument("--sample", type=int, default=sample, help="questions a set at most (%(default)s)")
    parser.add_argument(
        "--work", type=Path, default=Path("evaluation"), help="runs and vectors (%(default)s)"
    )
    parser.add_argument(
        "--vectors", type=Path, help="vector cache (default: vectors.sqlite in the work folder)"
    )
    parser.add_argument("--encoder", default=DEFAULT_ENCODER, help="any that the library loads (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def cached_encoder(args: argparse.Namespace) -> CachedEncoder:
    """The encoder with every vector kept."""
    return CachedEncoder(load_encoder(args.encoder), args.vectors or args.work / "vectors.sqlite")


def save(name: str, args: argparse.Namespace, markdown: str, data: dict[str, Any]) -> None:
    """Write benchmarks/results/papers-<name>-<date>.md and .json, and show the first."""
    encoder = "" if args.encoder == DEFAULT_ENCODER else f" --encoder {args.encoder}"
    made = {
        "command": f"python -m benchmarks.papers.{name}{encoder}",
        "questions a set at most": args.sample,
        **circumstances(args.seed),
    }
    libraries = ", ".join(f"{library} {number}" for library, number in made["libraries"].items())
    head = (
        f"`{made['command']} --data DIR`, {made['date']}: {made['machine']}, Python {made['python']}, seed "
        f"{args.seed}, at most {args.sample} questions a set; {libraries}.\n\n"
    )
    title, body = markdown.split("\n", 1)
    stem = RESULTS / f"papers-{name}-{made['date']}"
    RESULTS.mkdir(exist_ok=True)
    stem.with_suffix(".md").write_text(f"{title}\n\n{head}{body.strip()}\n", encoding="utf-8")
    stem.with_suffix(".json").write_text(json.dumps({"made": made, **data}, indent=1), encoding="utf-8")
    print(stem.with_suffix(".md").read_text(encoding="utf-8"))
