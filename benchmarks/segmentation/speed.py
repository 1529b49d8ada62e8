"""Speed and memory from text to chunks with offsets, by size and kind of the text.

    python -m benchmarks.segmentation.speed FILE… [--splitters …] [--sizes 0.1,1,10] [--inputs …]
    python -m benchmarks.segmentation.speed FILE… --encoder-share [--sizes 0.1,1]

Each splitter runs in its own process with one BLAS thread (--threads), after loading and a warm-up, on so
many megabytes of: `documents`, those of the files, one at a time and repeated; `one text`, the same joined;
and nasty texts, each a single text: `no spaces`, `line feeds`, `one-character sentences`, `blank-line
letters`, `headings` and `open tags`. Structure, sentences and tokens are read within the time. CPU seconds
are the process's; peak memory is what is added to that before the text. Results are saved, except with
--encoder-share: `sage-minilm` from text to chunks against the bare forward of its encoder over the very same
batches of tokens, in turn, in one process, the median of three rounds.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from typing import Any

from benchmarks import record
from benchmarks.segmentation.share import run_share
from precise_rag.documents import read_documents
from precise_rag.types import Document

SPLITTERS = "small,langchain-recursive,llamaindex-sentence,chonkie-recursive"
NASTY = {
    "no spaces": "abcdefghij",
    "line feeds": "\n",
    "one-character sentences": "A. B? C! ",
    "blank-line letters": "a\n\n",
    "headings": "# a\n",
    "open tags": "<p><div>",
}
"""Texts that are repeated up to the size."""


def run_one(splitter: str, kind: str, files: list[str], megabytes: float) -> dict[str, Any]:
    """Time a splitter on one input; in a process of its own, because memory is measured by its peak."""
    size = round(megabytes * 1e6)
    pool = list(read_documents(*files))
    split = load(splitter)
    sum(split(iter(pool[:1])))
    before = peak()
    given: Iterable[Document]
    if kind in NASTY:
        given = [Document("nasty", (NASTY[kind] * (size // len(NASTY[kind]) + 1))[:size])]
    elif kind == "one text":
        given = [Document("text", "\n\n".join(document.text for document in repeated(pool, size)))]
    else:
        given = repeated(pool, size)
    n_bytes = 0

    def counted() -> Iterator[Document]:
        nonlocal n_bytes
        for document in given:
            n_bytes += len(document.text.encode("utf-8", "replace"))
            yield document

    text = peak() - before
    started, cpu = time.perf_counter(), time.process_time()
    chunks = sum(split(counted()))
    wall, used = time.perf_counter() - started, time.process_time() - cpu
    return {
        "splitter": splitter,
        "input": kind,
        "MB": round(n_bytes / 1e6, 3),
        "chunks": chunks,
        "MB/s wall": round(n_bytes / 1e6 / wall, 3),
        "MB/s CPU": round(n_bytes / 1e6 / max(used, 1e-9), 3),
        "peak MB": round(peak() - before),
        "of that the text": round(text),
    }


def repeated(pool: list[Document], size: int) -> Iterator[Document]:
    done = 0
    for document in cycle(pool):
        if done >= size:
            return
        done += len(document.text)
        yield document


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load(kind: str) -> Callable[[Iterator[Document]], Iterator[int]]:
    """A function from documents to the number of chunks of each."""
    if kind in ("small", "sage-minilm"):
        from precise_rag import Segmenter

        segmenter = Segmenter.from_pretrained(kind)
        return lambda documents: map(len, segmenter.segment_many(documents))
    import benchmarks.peers.splitters  # noqa: F401  adds the splitters of other libraries
    from precise_rag.encoders import load_encoder
    from precise_rag.evaluation.splitters import load_splitter

    name, _, size = kind.partition(":")
    options = {"chunk_size": int(size)} if size else {}
    splitter = load_splitter(name, load_encoder(), **options)
    return lambda documents: (len(splitter(document)) for document in documents)


def in_process(args: argparse.Namespace, splitter: str, kind: str, size: str) -> dict[str, Any]:
    """Run `run_one`, or the encoder's share, in a fresh process."""
    command = [sys.executable, "-m", __spec__.name, *args.files, "--one", splitter, "--inputs", kind]
    command += ["--sizes", size]
    environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    environment |= {"TOKENIZERS_PARALLELISM": "true" if args.threads > 1 else "false"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(row), flush=True)
    return row


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__, data=False)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--splitters", default=SPLITTERS)
    parser.add_argument("--sizes", default="0.1,1,10", help="megabytes (%(default)s)")
    parser.add_argument("--inputs", default="documents", help='comma-separated, or "nasty" (%(default)s)')
    parser.add_argument("--encoder-share", action="store_true", help="sage-minilm against its encoder alone")
    parser.add_argument("--threads", type=int, default=1, help="of the BLAS library and torch")
    parser.add_argument("--name", default="speed", help="of the result (%(default)s)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one == "encoder-share":
        print(json.dumps(run_share(read_documents(*args.files), float(args.sizes))))
    elif args.one:
        print(json.dumps(run_one(args.one, args.inputs, args.files, float(args.sizes))))
    elif args.encoder_share:
        for size in args.sizes.split(","):
            in_process(args, "encoder-share", args.inputs, size)
    else:
        inputs = list(NASTY) if args.inputs == "nasty" else args.inputs.split(",")
        rows = [
            in_process(args, splitter, kind, size)
            for splitter in args.splitters.split(",")
            for kind in inputs
            for size in args.sizes.split(",")
        ]
        name, title = f"segmentation/{args.name}", "Speed of cutting"
        record.save_rows(__spec__.name, args, name, title, rows, doc=__doc__, form=",g")


if __name__ == "__main__":
    main()
