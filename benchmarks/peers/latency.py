"""Time to the selected context: a cold `precise ask`, and a warm pipeline with 1, 5 and 10 callers.

    python -m benchmarks.peers.latency --data DIR [--sentences 5000] [--questions 30] [--callers 1,5,10]

Callers ask the whole time, each its next question when the last one is answered, so that ten of them wait at
least ten times the CPU time of a question, divided by the number of cores. "With pauses" they read first, as
people do: a second on average, at random. CPU seconds are those of the process with all its threads; on a
machine that has other work they alone are shown.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.questions import real_documents
from benchmarks.tables import table
from precise_rag import HybridIndex, PreciseRAG, load_encoder, load_index
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.runs.environment import peak_mb

ROUNDS, PAUSE = 5, 1.0
_WALL = ("p50 ms", "p95 ms")


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--sentences", type=int, default=5000, help="in the index, at least (%(default)s)")
    parser.add_argument("--questions", type=int, default=30, help="for each number of callers (%(default)s)")
    parser.add_argument("--callers", default="1,5,10", help="(%(default)s)")
    parser.add_argument("--index", type=Path, help="a saved index to ask (default: one is built)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(args, args.index or Path(folder) / "index")
    busy = os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)
    shown = [{name: row[name] for name in row if not (busy and name in _WALL)} for row in found]
    text = ["# Latency", f"An index of {args.sentences:,} sentences.", table(shown)]
    if busy:
        text.append("The machine had other work: wall times are left out.")
    record.save("latency", record.made(__spec__.name, args), "\n\n".join(text))


def measure(args: Namespace, path: Path) -> list[dict[str, Any]]:
    """One row for the cold command and one for each number of callers and unit."""
    if not path.exists():
        index, documents = HybridIndex(load_encoder(device="cpu")), real_documents(args.data)
        while len(index) < args.sentences and (more := list(islice(documents, 2))):
            index.add(more)
        index.save(path)
    asked = load_development_set("squad", args.data).sample(args.questions, args.seed).questions
    questions = [question.text for question in asked]
    rows = [cold(path, questions[0])]
    for unit in ("sentence", "passage"):
        rag = PreciseRAG(load_index(path, returns=unit))
        rag.retrieve(questions[0])
        rows += [
            warm(rag, unit, questions, int(callers), pause)
            for callers in args.callers.split(",")
            for pause in (0.0, PAUSE)[: 1 + (int(callers) > 1)]
        ]
    return rows


def cold(path: Path, question: str) -> dict[str, Any]:
    """Medians of fresh processes, with compiled modules, as pip installs them."""
    installed = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    code = "import sys; from precise_rag.cli import main; sys.exit(main(sys.argv[1:]))"
    spent = []
    subprocess.run([sys.executable, "-c", "import precise_rag.cli.ask"], check=True, env=installed)
    for _ in range(ROUNDS):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-c", code, "ask", str(path), question]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=installed)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        spent.append((time.perf_counter() - started, cpu))
    wall, cpu = np.median(spent, axis=0)
    return {
        "what": "cold `precise ask`",
        "p50 ms": round(1000 * wall),
        "p95 ms": round(1000 * max(spent)[0]),
        "CPU ms a question": round(1000 * cpu),
        "peak MB": round(after.ru_maxrss / 1024),
    }


def warm(rag: PreciseRAG, unit: str, questions: list[str], callers: int, pause: float) -> dict[str, Any]:
    """Questions asked by several threads at a time. pause: mean seconds before each."""
    pauses = dict(zip(questions, np.random.default_rng(0).exponential(pause, len(questions)), strict=True))

    def ask(question: str) -> float:
        time.sleep(pauses[question])
        started = time.perf_counter()
        rag.retrieve(question)
        return time.perf_counter() - started

    before = time.process_time()
    with ThreadPoolExecutor(callers) as pool:
        seconds = list(pool.map(ask, questions))
    cpu = time.process_time() - before
    p50, p95 = 1000 * np.percentile(seconds, [50, 95])
    return {
        "what": f"{unit}s, {callers} callers" + (" with pauses" if pause else ""),
        "p50 ms": round(p50),
        "p95 ms": round(p95),
        "CPU ms a question": round(1000 * cpu / len(questions)),
        "peak MB": round(peak_mb()),
    }


if __name__ == "__main__":
    main()
