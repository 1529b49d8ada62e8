"""Speed and memory from text to chunks with offsets, by size of the text.

    python -m benchmarks.segmentation.speed FILE… [--splitters …] [--sizes 0.01,0.1,1,10] [--processes 1]
    python -m benchmarks.segmentation.speed FILE… --encoder-share [--sizes 0.1,1]

Prints a table. Each splitter runs in its own process with one BLAS thread (--threads), after loading and a
warm-up. The documents of the files are repeated until the size is reached; peak memory is the process's.
With --encoder-share: `sage-minilm` from text to chunks against the bare forward of its encoder over the
very same batches of tokens, one after the other in one process, the median of three rounds.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle

from benchmarks import record
from benchmarks.segmentation.share import run_share
from precise_rag.documents import read_documents

SPLITTERS = ("small", "langchain-recursive", "llamaindex-sentence", "chonkie-recursive")


def run_one(kind: str, files: list[str], megabytes: float, processes: int) -> dict[str, object]:
    pool = list(read_documents(*files))
    split = load(kind, processes)
    sum(1 for _ in split(iter(pool[:1])))
    before, started, cpu = peak(), time.perf_counter(), time.process_time()
    done = 0

    def stream() -> Iterator[object]:
        nonlocal done
        for document in cycle(pool):
            if done >= megabytes * 1e6:
                return
            done += len(document.text.encode("utf-8", "replace"))
            yield document

    chunks = sum(split(stream()))
    wall = time.perf_counter() - started
    used = time.process_time() - cpu
    total = done / 1e6
    return {
        "splitter": kind,
        "MB": round(total, 3),
        "chunks": chunks,
        "MB/s wall": round(total / wall, 3),
        "MB/s CPU": round(total / max(used, 1e-9), 3),
        "peak MB": round(peak()),
        "peak MB before": round(before),
    }


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load(kind: str, processes: int) -> Callable[[Iterator], Iterator[int]]:
    """A function from documents to the number of chunks of each."""
    if kind in ("small", "sage-minilm"):
        from precise_rag import Segmenter

        segmenter = Segmenter.from_pretrained(kind)
        return lambda documents: map(len, segmenter.segment_many(documents, processes=processes))
    from precise_rag.encoders import load_encoder
    from precise_rag.evaluation.peers.splitters import load_peer_splitter

    name, _, size = kind.partition(":")
    options = {"chunk_size": int(size)} if size else {}
    splitter = load_peer_splitter(name, load_encoder(), **options)
    return lambda documents: (len(splitter(document)) for document in documents)


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__, data=False)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--splitters", default=",".join(SPLITTERS))
    parser.add_argument("--sizes", default="0.01,0.1,1,10")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--encoder-share", action="store_true", help="sage-minilm against its encoder alone")
    parser.add_argument("--threads", type=int, default=1, help="of the BLAS library and torch")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one == "encoder-share":
        print(json.dumps(run_share(read_documents(*args.files), float(args.sizes))))
        return
    if args.one:
        print(json.dumps(run_one(args.one, args.files, float(args.sizes), args.processes)))
        return
    header: list[str] | None = None
    for kind in ["encoder-share"] if args.encoder_share else args.splitters.split(","):
        for size in args.sizes.split(","):
            command = [sys.executable, "-m", __spec__.name, *args.files, "--one", kind, "--sizes", size]
            command += ["--processes", str(args.processes)]
            environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
            environment |= {"TOKENIZERS_PARALLELISM": "true" if args.threads > 1 else "false"}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            row = json.loads(done.stdout.splitlines()[-1])
            if header is None:
                header = list(row)
                print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}")
            print(f"| {' | '.join(str(row[name]) for name in header)} |", flush=True)


if __name__ == "__main__":
    main()
