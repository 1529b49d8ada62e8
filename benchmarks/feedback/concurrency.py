"""Latency of each stage and memory with 1, 5 and 10 users (the set-up of SAGE's Tables VIII and IX).

    python benchmarks/feedback/concurrency.py [--delay 0.2] [--questions 200] [--long 1000]

The text is the Python language reference inside the interpreter. The language model is a local HTTP
server in its own process that takes a fixed time for every call, so that what is measured is this
library: retrieval, the loop, the client. For every third question the judge asks for more context
while seven chunks or fewer were sent. Writes benchmarks/results/feedback-concurrency-DATE.json.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import precise_rag
from precise_rag import Document, PreciseRAG
from precise_rag.llm import OpenAIChat
from precise_rag.trace import Ledger

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

USERS = (1, 5, 10)
TEMPLATES = (
    "What does the reference say about {}?",
    "When is {} evaluated, and in which order?",
    "Which exception can {} raise?",
    "How does {} differ from a function call?",
)


def reply_after(delay: float, request: dict) -> object:
    """A draft, or a judgement that asks for more context at the first draft of every third question."""
    from chat_server import says

    instructions, data = (message["content"] for message in request["messages"])
    if "adjustment" not in instructions:
        return says("The passages say so [1].", usage=(len(data) // 4, 8), stall=delay)
    question = data.rpartition("question\n")[2]
    unsure = sum(map(ord, question.split("\n")[0])) % 3 == 0 and data.count("end of passage") <= 7
    judgement = {"reason": "as told", "score": 5 if unsure else 9, "adjustment": 1 if unsure else 0}
    return says(json.dumps(judgement), usage=(len(data) // 4, 20), stall=delay)


def serve(delay: float, connection: Connection) -> None:
    """Serve until told to stop."""
    from chat_server import ChatServer

    with ChatServer(lambda request: reply_after(delay, request)) as server:
        server.requests = server.headers = Forgetful()
        connection.send(server.url)
        connection.recv()


class Forgetful(list):
    """A list that keeps nothing: the server must not grow either."""

    def append(self, item: object) -> None:
        pass


@contextmanager
def model_server(delay: float) -> Iterator[str]:
    """The server's address while it runs in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(delay, there), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        here.send("stop")
        process.join()


def resident_mb() -> float:
    """Memory of this process now, in MB (Linux)."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def questions(n: int) -> list[str]:
    names = sorted(topics)
    return [TEMPLATES[i // len(names) % len(TEMPLATES)].format(names[i % len(names)]) for i in range(n)]


def summary(milliseconds: list[float]) -> dict[str, float]:
    return {
        "mean": round(statistics.fmean(milliseconds), 1),
        "p95": round(float(np.percentile(milliseconds, 95)), 1),
        "n": len(milliseconds),
    }


async def measure(rag: PreciseRAG, asked: list[str], users: int) -> dict:
    """Stage latencies, throughput and memory for `users` questions at a time."""
    started = time.perf_counter()
    answers = await rag.abatch(asked, concurrency=users)
    seconds = time.perf_counter() - started
    latencies: dict[str, list[float]] = defaultdict(list)
    ledger = Ledger()
    for answer in answers:
        for stage in answer.trace.stages:
            latencies[stage.name].append(stage.ms)
        for call in answer.trace.calls:
            latencies[call.role].append(call.ms)
        ledger.add(answer.trace)
    bill = ledger.total
    return {
        "users": users,
        "questions": len(asked),
        "questions_per_second": round(len(asked) / seconds, 2),
        "calls_per_question": round(bill.calls / len(asked), 2),
        "resident_mb": round(resident_mb(), 1),
        "ms": {name: summary(values) for name, values in latencies.items()},
    }


async def growth(rag: PreciseRAG, asked: list[str], users: int, step: int = 100) -> list[float]:
    """Memory after each `step` questions; answers are dropped as a server would drop them."""
    memory = []
    for start in range(0, len(asked), step):
        await rag.abatch(asked[start : start + step], concurrency=users)
        memory.append(round(resident_mb(), 1))
    return memory


async def run(rag: PreciseRAG, args: argparse.Namespace) -> dict:
    await rag.abatch(questions(20), concurrency=10)  # connections, lazily loaded models
    rows = [await measure(rag, questions(args.questions), users) for users in USERS]
    memory = await growth(rag, questions(args.long), users=10)
    await rag.loop.llm.aclose()
    return {"users": rows, "resident_mb_each_100_questions": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--delay", type=float, default=0.2, help="seconds that each model call takes")
    parser.add_argument("--questions", type=int, default=200, help="for each number of users")
    parser.add_argument("--long", type=int, default=1000, help="questions of the memory test")
    args = parser.parse_args()
    documents = [Document(name, text) for name, text in sorted(topics.items())]
    started = time.perf_counter()
    with model_server(args.delay) as url:
        llm = OpenAIChat("local-model", base_url=url, timeout=60)
        rag = PreciseRAG.from_documents(documents, llm=llm, show_progress=True)
        result = {
            "date": date.today().isoformat(),
            "version": precise_rag.__version__,
            "python": platform.python_version(),
            "machine": f"{platform.machine()}, {multiprocessing.cpu_count()} cores, no GPU",
            "delay_ms": args.delay * 1e3,
            "indexing_seconds": round(time.perf_counter() - started, 1),
            "resident_mb_after_indexing": round(resident_mb(), 1),
            **asyncio.run(run(rag, args)),
        }
    stages = list(result["users"][0]["ms"])
    print(f"{'users':>5} {'q/s':>6} {'MB':>7} " + " ".join(f"{name:>18}" for name in stages))
    for row in result["users"]:
        cells = (f"{row['ms'][name]['mean']:.1f} / {row['ms'][name]['p95']:.1f}" for name in stages)
        print(
            f"{row['users']:>5} {row['questions_per_second']:>6} {row['resident_mb']:>7} "
            + " ".join(f"{cell:>18}" for cell in cells)
        )
    print("(milliseconds: mean / 95th percentile)")
    print("MB after each 100 of the long run:", *result["resident_mb_each_100_questions"])
    folder = HERE.parent / "results"
    folder.mkdir(exist_ok=True)
    file = folder / f"feedback-concurrency-{result['date']}.json"
    file.write_text(json.dumps(result, indent=1) + "\n")
    print(file.relative_to(HERE.parents[1]))


if __name__ == "__main__":
    main()
