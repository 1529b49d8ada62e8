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
from typing import Any

from benchmarks import record

SPLITTERS = ("small", "langchain-recursive", "llamaindex-sentence", "chonkie-recursive")


def run_one(kind: str, files: list[str], megabytes: float, processes: int) -> dict[str, object]:
    from precise_rag.documents import read_documents

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


def run_share(files: list[str], megabytes: float) -> dict[str, object]:
    """Time the whole path and the bare encoder in turn, on the same batches of tokens."""
    import numpy as np
    import torch

    from precise_rag import Segmenter
    from precise_rag.documents import read_documents
    from precise_rag.encoders.sentence_transformer import fast_precision

    segmenter = Segmenter.from_pretrained("sage-minilm")
    module = segmenter.model.encoder.module
    documents, size = [], 0
    for document in cycle(list(read_documents(*files))):
        documents.append(document)
        size += len(document.text.encode("utf-8", "replace"))
        if size >= megabytes * 1e6:
            break
    batches: list[dict[str, object]] = []
    hook = module.register_forward_pre_hook(lambda _, inputs: batches.append(dict(inputs[0])))
    chunks = sum(len(found) for found in segmenter.segment_many(documents))
    hook.remove()
    batches = [  # what was given, not what the modules added to it
        {
            name: value
            for name, value in batch.items()
            if name in ("input_ids", "attention_mask", "token_type_ids", "modality")
        }
        for batch in batches
    ]
    n_tokens = sum(int(batch["attention_mask"].sum()) for batch in batches)

    def now() -> Any:
        if module.device.type == "cuda":
            torch.cuda.synchronize()
        return np.array([time.perf_counter(), time.process_time()])

    whole, bare = [], []
    for _ in range(3):
        started = now()
        sum(len(found) for found in segmenter.segment_many(documents))
        whole.append(now() - started)
        started = now()
        with torch.inference_mode(), fast_precision(module.device.type):
            for batch in batches:
                module(dict(batch))["sentence_embedding"].float().cpu()
        bare.append(now() - started)
    (long, long_cpu), (short, short_cpu) = np.median(whole, axis=0), np.median(bare, axis=0)
    return {
        "device": str(module.device),
        "threads": torch.get_num_threads(),
        "MB": round(size / 1e6, 3),
        "tokens": n_tokens,
        "chunks": chunks,
        "whole path s": round(long, 2),
        "bare encoder s": round(short, 2),
        "whole / bare": round(long / short, 3),
        "by CPU time": round(long_cpu / short_cpu, 3),
        "share outside": f"{1 - short / long:.1%}",
        "tokens/s": round(n_tokens / long),
        "MB/s": round(size / 1e6 / long, 4),
        "peak MB": round(peak()),
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
        print(json.dumps(run_share(args.files, float(args.sizes))))
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
