"""Latency of each stage and memory with 1, 5 and 10 users (the set-up of SAGE's Tables VIII and IX).

    python -m benchmarks.feedback.concurrency [--delay 0.2] [--questions 200] [--long 1000]

The text is the Python language reference inside the interpreter (the paper: TriviaQA). The language model
is a local HTTP server in its own process that takes a fixed time for every call, so that what is measured
is this library: retrieval, the loop, the client. For every third question the judge asks for more context
while seven chunks or fewer were sent. Two naive pipelines (200-token chunks, 7 of them, no feedback) are
measured beside it.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pydoc_data.topics import topics
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.tables import table
from benchmarks.timing import timed
from precise_rag import Document, PreciseRAG, Segmenter
from precise_rag.encoders import load_encoder
from precise_rag.evaluation.runs.environment import resident_mb
from precise_rag.index import BM25Index, DenseIndex
from precise_rag.llm import OpenAIChat
from precise_rag.trace import Ledger

USERS = (1, 5, 10)
COLUMNS = ("method", "memory, GB", "indexing, s", "segmentation, s (tokens/s)")
COLUMNS += ("retrieval, s", "feedback, s", "answering, s")
PAPER = (
    ("paper: naive RAG", "0.58", "0.000", "9.70 (1,066)", "0.914", "", "1.817"),
    ("paper: BM25, naive RAG", "0.61", "0.005", "9.70 (1,066)", "0.003", "", "1.810"),
    ("paper: BM25 and SAGE", "4.87 + 2.20 GPU", "0.005", "5.07 (644)", "0.502", "1.791", "1.791"),
    ("paper: SAGE", "5.17 + 2.20 GPU", "0.012", "16.05 (725)", "1.30", "1.831", "1.794"),
    ("paper: SAGE, 5 users", "6.32 + 2.77 GPU", "0.012", "16.05 (725)", "2.20", "1.834", "1.799"),
    ("paper: SAGE, 10 users", "7.27 + 3.30 GPU", "0.012", "16.05 (725)", "3.05", "1.831", "1.791"),
)
"""Table VIII, GPT-4o-mini over the web; Table IX has the same retrieval with a local model."""
TEMPLATES = (
    "What does the reference say about {}?",
    "When is {} evaluated, and in which order?",
    "Which exception can {} raise?",
    "How does {} differ from a function call?",
)


def reply_after(delay: float, request: dict) -> object:
    """A draft, or a judgement that asks for more context at the first draft of every third question."""
    from tests.support.chat_server import says

    instructions, data = (message["content"] for message in request["messages"])
    if "adjustment" not in instructions:
        return says("The passages say so [1].", usage=(len(data) // 4, 8), stall=delay)
    question = data.rpartition("question\n")[2]
    unsure = sum(map(ord, question.split("\n")[0])) % 3 == 0 and data.count("end of passage") <= 7
    judgement = {"reason": "as told", "score": 5 if unsure else 9, "adjustment": 1 if unsure else 0}
    return says(json.dumps(judgement), usage=(len(data) // 4, 20), stall=delay)


def serve(delay: float, connection: Connection) -> None:
    """Serve until told to stop."""
    from tests.support.chat_server import ChatServer

    with ChatServer(lambda request: reply_after(delay, request)) as server:
        server.requests = server.headers = Forgetful()
        connection.send(server.url)
        connection.recv()


class Forgetful(list):
    """A list that keeps nothing, so that the server's memory does not grow."""

    def append(self, item: object) -> None:
        pass


@contextmanager
def model_server(delay: float) -> Iterator[str]:
    """Run the server in its own process; yields its address."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(delay, there), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        here.send("stop")
        process.join()


def questions(n: int) -> list[str]:
    names = sorted(topics)
    return [TEMPLATES[i // len(names) % len(TEMPLATES)].format(names[i % len(names)]) for i in range(n)]


def summary(milliseconds: list[float]) -> dict[str, float]:
    mean, p95 = np.mean(milliseconds), np.percentile(milliseconds, 95)
    return {"mean": round(float(mean), 1), "p95": round(float(p95), 1), "n": len(milliseconds)}


def memory() -> float:
    """Megabytes of this process now (Linux)."""
    gc.collect()
    return round((resident_mb() or 0.0) * 2**20 / 1e6, 1)


async def measure(rag: PreciseRAG, asked: list[str], users: int) -> dict:
    """Stage latencies, throughput and memory for `users` questions at a time."""
    started = time.perf_counter()
    answers = await rag.abatch(asked, concurrency=users)
    seconds = time.perf_counter() - started
    latencies: dict[str, list[float]] = defaultdict(list)
    ledger = Ledger()
    for answer in answers:
        for name, ms in (
            *((stage.name, stage.ms) for stage in answer.trace.stages),
            *((call.role, call.ms) for call in answer.trace.calls),
        ):
            latencies[name].append(ms)
        ledger.add(answer.trace)
    return {
        "users": users,
        "questions": len(asked),
        "questions_per_second": round(len(asked) / seconds, 2),
        "calls_per_question": round(ledger.total.calls / len(asked), 2),
        "resident_mb": memory(),
        "ms": {name: summary(values) for name, values in latencies.items()},
    }


def cutting(documents: list[Document]) -> dict:
    """Seconds that `small` needs to cut the text, and its speed."""
    segmenter, encoder = Segmenter.from_pretrained("small"), load_encoder()
    segmenter.segment(documents[0].text)
    tokens = int(encoder.count_tokens([document.text for document in documents]).sum())
    seconds = timed(lambda: [segmenter.segment(document.text) for document in documents]).seconds
    return {"seconds": round(seconds, 3), "tokens_per_second": round(tokens / seconds)}


def naive(documents: list[Document], asked: list[str]) -> dict:
    """Seconds to index and to search with 200-token chunks."""
    encoder, found = load_encoder(), {}
    for name, kind in (("dense", DenseIndex), ("BM25", BM25Index)):

        def build(kind: Any = kind) -> Any:
            index = kind.build(documents, encoder, chunks="200 tokens")
            index.search(asked[0], 7)
            return index

        built, _, index = timed(build)
        milliseconds = [
            1000 * timed(lambda q=question, i=index: i.search(q, 7)).seconds for question in asked
        ]
        found[name] = {"indexing_seconds": round(built, 2), "ms": summary(milliseconds)}
    return found


_LEGEND = """\
A call of the language model takes {delay:.0f} ms here; the paper's figures are GPT-4o-mini's.
The paper's time to build the database is without encoding, ours with it. Its retrieval is a search and a
reranker on a GPU; ours is search, reranker, redundancy filter and selection on the CPU, where users share the
cores. F1 needs TriviaQA and a model, and was not measured.
"""


def render(result: dict) -> str:
    """Table VIII with our rows below the paper's."""
    speed = f"{result['cutting']['seconds']:.2f} ({result['cutting']['tokens_per_second']:,})"
    body = [list(row) for row in PAPER]
    for name, one in result["naive"].items():
        built, searched = f"{one['indexing_seconds']:.1f}", f"{one['ms']['mean'] / 1000:.3f}"
        body.append([f"ours: naive RAG, {name}", "", built, "", searched, "", ""])
    for row in result["users"]:
        seconds = {name: one["mean"] / 1000 for name, one in row["ms"].items()}
        retrieval = sum(seconds.get(name, 0.0) for name in ("search", "rerank", "redundancy", "selection"))
        stages = [f"{value:.3f}" for value in (retrieval, seconds["judge"], seconds["answer"])]
        users = "" if row["users"] == 1 else f", {row['users']} users"
        size, built = f"{row['resident_mb'] / 1000:.2f}", f"{result['indexing_seconds']:.1f}"
        body.append([f"ours{users}", size, built, speed, *stages])
    growth = ", ".join(f"{value:,.0f}" for value in result["resident_mb_each_100_questions"])
    rates = ", ".join(f"{row['users']}: {row['questions_per_second']}" for row in result["users"])
    return "\n\n".join(
        [
            "# Several users at a time",
            f"{record.about(__doc__)} {result['note']}".strip(),
            "## SAGE, Tables VIII and IX",
            _LEGEND.format(delay=result["delay_ms"]).strip(),
            table([dict(zip(COLUMNS, row, strict=True)) for row in body]),
            f"Questions a second by users: {rates}. Memory (MB) after each 100 questions of a long run with "
            f"10 users: {growth}.\n",
        ]
    )


async def run(rag: PreciseRAG, args: argparse.Namespace) -> dict:
    await rag.abatch(questions(20), concurrency=10)  # connections, lazily loaded models
    rows = [await measure(rag, questions(args.questions), users) for users in USERS]
    asked, sizes = questions(args.long), []
    for start in range(0, len(asked), 100):  # answers are dropped as a server would drop them
        await rag.abatch(asked[start : start + 100], concurrency=10)
        sizes.append(memory())
    await rag.llm.aclose()
    return {"users": rows, "resident_mb_each_100_questions": sizes}


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__, data=False)
    parser.add_argument("--delay", type=float, default=0.2, help="seconds that each model call takes")
    parser.add_argument("--questions", type=int, default=200, help="for each number of users")
    parser.add_argument("--long", type=int, default=1000, help="questions of the memory test")
    parser.add_argument("--note", default="", help="what else the machine did meanwhile")
    args = parser.parse_args()
    documents = [Document(name, text) for name, text in sorted(topics.items())]
    with model_server(args.delay) as url:
        llm = OpenAIChat("local-model", base_url=url, timeout=60)
        seconds, _, rag = timed(lambda: PreciseRAG.from_documents(documents, llm=llm, show_progress=True))
        result = {
            "note": args.note,
            "delay_ms": args.delay * 1e3,
            "indexing_seconds": round(seconds, 1),
            "resident_mb_after_indexing": memory(),
            **asyncio.run(run(rag, args)),
        }
    result["cutting"] = cutting(documents)
    result["naive"] = naive(documents, questions(50))
    record.save("feedback", "concurrency", record.made(__spec__.name, args), render(result), result)


if __name__ == "__main__":
    main()
