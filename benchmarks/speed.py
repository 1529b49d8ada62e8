"""What work takes: cutting, encoding, indexing, reranking; a cold command; and a warm pipeline with callers.

    python -m benchmarks.speed --data DIR [--device cuda] [--questions 30] [--callers 1,5,10]

Work: the median of three rounds, one way after the other in each, on documents of the development sets.
sentence-transformers and a CrossEncoder of the cascade's size (a BERT with six layers and random weights,
made here) run in float32. CPU seconds are those of the process with all its threads. Questions: callers ask
the whole time, each its next question when the last one is answered, so that ten of them wait at least ten
times the CPU time of a question, divided by the number of cores; only CPU times mean something on a machine
that has other work. A GPU computes in bfloat16, and the cascade on a CPU in int8.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import load_development_set, real_documents
from benchmarks.harness.tables import about, new_parser, save, table
from precise_rag import HybridIndex, PreciseRAG, Segmenter, load_encoder, load_index
from precise_rag.encoders.local import MINILM, packaged_encoder
from precise_rag.rerank import CascadeReranker
from precise_rag.rerank.pairs import Piece
from precise_rag.sentences import split_sentences
from precise_rag.types import Document

ROUNDS, N_READ = 3, 20


def main() -> None:
    parser = new_parser(__spec__.name, __doc__)
    parser.add_argument("--device", default="cpu", help="of torch (%(default)s)")
    parser.add_argument(
        "--megabytes", type=float, default=0.2, help="of text to cut and encode (%(default)s)"
    )
    parser.add_argument("--sentences", type=int, default=20_000, help="in the index, at least (%(default)s)")
    parser.add_argument("--questions", type=int, default=30, help="for each number of callers (%(default)s)")
    parser.add_argument("--callers", default="1,5,10", help="(%(default)s)")
    args = parser.parse_args()
    asked = load_development_set("squad", args.data).sample(args.questions, args.seed).questions
    questions = [question.text for question in asked]
    documents = list(some_documents(args))
    with tempfile.TemporaryDirectory() as folder:  # first, while nothing else takes memory
        rows = list(answering(args, Path(folder) / "index", questions))
    parts = [f"## Questions to an index of {args.sentences:,} sentences", table(rows)]
    parts += ["## Work", table(work(args, documents, questions), ",.2f")]
    name = "speed" if args.device == "cpu" else f"speed-{args.device}"
    save(name, __spec__.name, args, f"Speed, {args.device}", about(__doc__), *parts)


def some_documents(args: Namespace) -> Iterator[Document]:
    """Yield documents up to --megabytes."""
    left = int(1e6 * args.megabytes)
    for document in real_documents(args.data):
        if left <= 0:
            return
        yield Document(document.id, document.text[:left])
        left -= len(document.text)


def work(args: Namespace, documents: list[Document], questions: list[str]) -> list[dict[str, Any]]:
    """A row for each way to do each work."""
    device, megabytes = args.device, sum(len(d.text) for d in documents) / 1e6
    texts = sentences_of(documents)
    encoder = load_encoder(device=device)
    cascade, pieces = CascadeReranker(device=device), list(map(Piece, texts[:N_READ]))
    stock_encoder, stock_reranker = stock(device)
    tokens = int(encoder.count_tokens(texts).sum())
    pairs = N_READ * len(questions[:5])
    ways: dict[str, tuple[float, str, Callable[[], Any]]] = {}
    for model in ("small", "sage"):
        segmenter = Segmenter.from_pretrained(model, device=device)
        ways[f"cutting: `{model}`"] = megabytes, "MB", lambda s=segmenter: [s.segment(d) for d in documents]
    ways |= {
        "encoding: precise-rag": (tokens, "tokens", lambda: encoder.encode(texts)),
        "encoding: sentence-transformers": (tokens, "tokens", lambda: stock_encoder.encode(texts)),
        "indexing: `HybridIndex.build`": (tokens, "tokens", lambda: HybridIndex.build(documents, encoder)),
        "reranking: cascade": (pairs, "pairs", lambda: [cascade.logits(q, pieces) for q in questions[:5]]),
        "reranking: CrossEncoder": (
            pairs,
            "pairs",
            lambda: [stock_reranker.predict([(q, t) for t in texts[:N_READ]]) for q in questions[:5]],
        ),
    }
    calls = {name: call for name, (_, _, call) in ways.items()}
    in_turn(calls, 1)
    rows = []
    for name, took in in_turn(calls, ROUNDS).items():
        count, unit, _ = ways[name]
        seconds, cpu = np.median(took, axis=0)
        rates = {
            "in a second": f"{count / seconds:,.4g} {unit}",
            "in a CPU second": f"{count / cpu:,.4g} {unit}",
        }
        rows.append({"what": name, "seconds": float(seconds), "CPU s": float(cpu), **rates})
    return rows


def answering(args: Namespace, path: Path, questions: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for the cold command, and one for each number of callers."""
    index, documents = HybridIndex(load_encoder(device=args.device)), real_documents(args.data)
    while len(index) < args.sentences and (more := list(islice(documents, 2))):
        index.add(more)
    index.save(path)
    yield cold(path, questions[0])
    rag = PreciseRAG(load_index(path))
    rag.retrieve(questions[0])

    def ask(question: str) -> float:
        started = time.perf_counter()
        rag.retrieve(question)
        return time.perf_counter() - started

    for callers in map(int, args.callers.split(",")):
        before = time.process_time()
        with ThreadPoolExecutor(callers) as pool:
            seconds = list(pool.map(ask, questions))
        cpu = time.process_time() - before
        p50, p95 = 1000 * np.percentile(seconds, [50, 95])
        yield _row(f"{callers} callers", p50, p95, 1000 * cpu / len(questions), _peak_mb())


def cold(path: Path, question: str) -> dict[str, Any]:
    """Medians of fresh processes, with compiled modules, as pip installs them."""
    installed = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "precise_rag", "ask", str(path), question]
    spent = []
    for _ in range(ROUNDS + 1):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=installed)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        spent.append((time.perf_counter() - started, cpu))
    wall, cpu = 1000 * np.median(spent[1:], axis=0)
    return _row("cold `precise ask`", wall, 1000 * max(spent[1:])[0], cpu, after.ru_maxrss / 1024)


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def _row(what: str, p50: float, p95: float, cpu: float, peak: float) -> dict[str, Any]:
    times = {"p50 ms": round(p50), "p95 ms": round(p95), "CPU ms a question": round(cpu)}
    return {"what": what, **times, "peak MB": round(peak)}


def in_turn(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Do each way in turn, round by round, so that a busy machine slows all of them alike.

    Returns the seconds of each on the clock and of the CPU.
    """
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, call in ways.items():
            started, cpu = time.perf_counter(), time.process_time()
            call()
            spent[name].append((time.perf_counter() - started, time.process_time() - cpu))
    return spent


def sentences_of(documents: list[Document]) -> list[str]:
    """The sentences of some documents."""
    return [d.text[span.start : span.end].strip() for d in documents for span in split_sentences(d.text)]


def stock(device: str) -> tuple[Any, Any]:
    """all-MiniLM-L6-v2 in sentence-transformers, and a CrossEncoder of its size, both in float32."""
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    from precise_rag.encoders.sentence_transformer import float32_folder

    config = BertConfig.from_pretrained(str(packaged_encoder(MINILM)), num_labels=1)
    with tempfile.TemporaryDirectory() as made:
        BertForSequenceClassification(config).save_pretrained(made)
        AutoTokenizer.from_pretrained(str(packaged_encoder(MINILM))).save_pretrained(made)
        reranker = CrossEncoder(made, device=device)
    with float32_folder(packaged_encoder(MINILM)) as folder:
        return SentenceTransformer(str(folder), device=device), reranker


if __name__ == "__main__":
    main()
