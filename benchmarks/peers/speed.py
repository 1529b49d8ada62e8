"""How fast splitters turn text into chunks, and the memory they need: ours and other libraries'.

    python -m benchmarks.peers.speed --data DIR

Each splitter runs in a process of its own, with the real encoder and no cache, on the same text: whole
documents of one development set, in seeded order, up to --kilobytes (those that encode sentences:
--semantic-kilobytes). Speed is text over CPU time, so that other work on the machine does not count;
loading the model is not counted. Writes benchmarks/results/peers-speed-<date>.md and .json.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.evaluate import circumstances
from precise_rag.evaluation.splitters import load_splitter
from precise_rag.evaluation.tables import format_markdown
from precise_rag.types import Document

PLAIN = {
    "LangChain RecursiveCharacterTextSplitter 200": ("langchain-recursive", {"chunk_size": 200}),
    "LlamaIndex SentenceSplitter 200": ("llamaindex-sentence", {"chunk_size": 200}),
    "chonkie RecursiveChunker 200": ("chonkie-recursive", {"chunk_size": 200}),
    "semchunk 200": ("semchunk", {"chunk_size": 200}),
    "precise small": ("precise", {}),
}
SEMANTIC = {
    "LangChain SemanticChunker": ("langchain-semantic", {}),
    "LlamaIndex SemanticSplitterNodeParser": ("llamaindex-semantic", {}),
    "chonkie SemanticChunker 200": ("chonkie-semantic", {"chunk_size": 200}),
    "precise sage-minilm": ("precise", {"model": "sage-minilm"}),
    "precise greedy (ChunkRAG)": ("precise-greedy", {}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("PRECISE_DATA"))
    parser.add_argument("--set", default="squad", help="whose documents are cut (default: %(default)s)")
    parser.add_argument("--kilobytes", type=int, default=600)
    parser.add_argument("--semantic-kilobytes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args)))
        return
    results = {}
    for name in (*PLAIN, *SEMANTIC):
        command = [sys.executable, "-m", "benchmarks.peers.speed", "--one", name]
        for option in ("data", "set", "kilobytes", "semantic_kilobytes", "seed"):
            command += [f"--{option.replace('_', '-')}", str(getattr(args, option))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        results[name] = json.loads(done.stdout.splitlines()[-1]) if not done.returncode else None
        print(name, results[name] or done.stderr.strip().splitlines()[-1], flush=True)
    save(results, args)


def measure(args: argparse.Namespace) -> dict[str, float]:
    """CPU seconds, bytes, chunks and peak memory of one splitter, in this process."""
    warnings.simplefilter("ignore")
    kind, options = {**PLAIN, **SEMANTIC}[args.one]
    limit = 1000 * (args.semantic_kilobytes if args.one in SEMANTIC else args.kilobytes)
    documents = draw(load_development_set(args.set, args.data).documents, limit, args.seed)
    split = load_splitter(kind, load_encoder(DEFAULT_ENCODER, device="cpu"), **options)
    split(Document("warm-up", documents[0].text[:2000]))
    wall, cpu = time.perf_counter(), time.process_time()
    chunks = [unit for document in documents for unit in split(document)]
    return {
        "bytes": sum(len(document.text.encode()) for document in documents),
        "seconds": round(time.perf_counter() - wall, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "chunks": len(chunks),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def draw(documents: Sequence[Document], limit: int, seed: int) -> list[Document]:
    """Documents in seeded order while they fit; the last one is cut at a paragraph."""
    drawn, room = [], limit
    for row in np.random.default_rng(seed).permutation(len(documents)).tolist():
        text = documents[row].text[:room]
        drawn.append(Document(documents[row].id, text[: text.rfind("\n\n")] if len(text) == room else text))
        room -= len(text)
        if room <= 0:
            break
    return drawn


def save(results: dict[str, dict[str, float] | None], args: argparse.Namespace) -> None:
    made = circumstances(args.seed)
    body = [
        [
            name,
            f"{one['bytes'] / 1e6 / one['cpu_seconds']:.3f}",
            f"{one['bytes'] / 1000:,.0f}",
            f"{one['cpu_seconds']:.2f}",
            f"{one['seconds']:.2f}",
            f"{one['bytes'] / one['chunks']:,.0f}",
            f"{one['peak_mb']:,.0f}",
        ]
        for name, one in results.items()
        if one
    ]
    header = [
        "splitter",
        "MB per CPU second",
        "kB",
        "CPU s",
        "wall s",
        "bytes a chunk",
        "peak MB of the process",
    ]
    libraries = ", ".join(f"{library} {number}" for library, number in made["libraries"].items())
    text = (
        f"# Speed of splitters, {made['date']}\n\n`python -m benchmarks.peers.speed --data DIR`: "
        f"{made['machine']}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}, {args.set} "
        f"documents, {DEFAULT_ENCODER} on the CPU where a splitter encodes; the machine did other work too, "
        f"so compare CPU time; {libraries}. "
        f"Peak memory includes Python, torch and the encoder (its tokenizer counts for all but ours).\n\n"
    )
    stem = Path(__file__).parents[1] / "results" / f"peers-speed-{made['date']}"
    stem.with_suffix(".md").write_text(text + format_markdown(header, body) + "\n", encoding="utf-8")
    stem.with_suffix(".json").write_text(
        json.dumps({"made": made, "results": results}, indent=1), encoding="utf-8"
    )
    print(stem.with_suffix(".md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
