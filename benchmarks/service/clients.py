"""What does `precise serve --rest` do for 50 clients at once?

    python -m benchmarks.service.clients --data DIR

The service runs in a process of its own, with its defaults. Each client sends one request after the other,
without a pause: to rerank 20 passages of SQuAD, or every fourth time to prune an article. A client that gets
status 503 waits as long as `Retry-After` says and asks again. *Lost*: requests without a reply, or
with another one than the same request gets alone. *Memory*: resident, of the service, after a tenth of the
requests, and at the end.
"""

import asyncio
import os
import random
import socket
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

import httpx

from benchmarks.record import new_parser, save_rows
from precise_rag.evaluation import load_development_set

MODULE = "benchmarks.service.clients"
_PASSAGES = 20


class Asked(NamedTuple):
    """A request: its path and body."""

    path: str
    body: dict[str, Any]


class Reply(NamedTuple):
    """What became of a request. waited: times that it was told to come later."""

    asked: int
    seconds: float
    waited: int
    right: bool


def requests(args: Namespace) -> list[Asked]:
    """Different requests, of which three in four rerank."""
    dataset = load_development_set("squad", args.data)
    rng = random.Random(args.seed)
    paragraphs = [part for one in dataset.documents for part in one.text.split("\n\n") if len(part) > 200]
    found = []
    for number, question in enumerate(rng.sample(dataset.questions, args.different)):
        if number % 4 == 3:
            text = rng.choice(dataset.documents).text
            found.append(Asked("/prune", {"text": text, "question": question.text}))
        else:
            texts = rng.sample(paragraphs, _PASSAGES)
            found.append(Asked("/rerank", {"query": question.text, "documents": texts}))
    return found


def told(reply: httpx.Response) -> Any:
    """What a reply says, without what differs each time."""
    body = reply.json()
    body.pop("id", None)
    return body


async def one_client(
    url: str, queue: "asyncio.Queue[int]", asked: list[Asked], alone: list[Any], replies: list[Reply]
) -> None:
    """Send requests until there are no more."""
    async with httpx.AsyncClient(base_url=url, timeout=120.0) as client:
        while not queue.empty():
            number = queue.get_nowait()
            began, waited = time.perf_counter(), 0
            while True:
                reply = await client.post(asked[number].path, json=asked[number].body)
                if reply.status_code != 503:
                    break
                waited += 1
                await asyncio.sleep(float(reply.headers["Retry-After"]))
            right = reply.status_code == 200 and told(reply) == alone[number]
            replies.append(Reply(number, time.perf_counter() - began, waited, right))


def memory(pid: int) -> float:
    """Resident MB of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def cpu_seconds(pid: int) -> float:
    """Seconds of processors that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(url: str, pid: int, args: Namespace) -> dict[str, Any]:
    """Ask each request alone, then all of them by all clients."""
    asked = requests(args)
    async with httpx.AsyncClient(base_url=url, timeout=120.0) as client:
        alone = [told(await client.post(one.path, json=one.body)) for one in asked]
    queue: asyncio.Queue[int] = asyncio.Queue()
    for number in range(args.requests):
        queue.put_nowait(number % len(asked))
    replies: list[Reply] = []
    sizes: list[float] = []

    async def watch() -> None:
        while len(replies) < args.requests:
            if len(replies) >= args.requests // 10:
                sizes.append(memory(pid))
            await asyncio.sleep(0.5)

    began, used = time.perf_counter(), cpu_seconds(pid)
    watching = asyncio.create_task(watch())
    await asyncio.gather(*(one_client(url, queue, asked, alone, replies) for _ in range(args.clients)))
    seconds = time.perf_counter() - began
    await watching
    cuts = quantiles([reply.seconds for reply in replies], n=20)
    return {
        "clients": args.clients,
        "requests": args.requests,
        "lost": args.requests - sum(reply.right for reply in replies),
        "told to come later": sum(reply.waited for reply in replies),
        "a second": round(args.requests / seconds, 1),
        "CPU s a request": round((cpu_seconds(pid) - used) / args.requests, 3),
        "p50 s": round(cuts[9], 2),
        "p95 s": round(cuts[18], 2),
        "memory MB": round(sizes[0]),
        "at the end": round(memory(pid)),
        "most": round(max(sizes)),
    }


def main() -> None:
    parser = new_parser(MODULE, __doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--different", type=int, default=40, help="different requests (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reranker", default="default")
    args = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "precise_rag", "serve", "--rest", "--port", str(port)]
    with subprocess.Popen([*command, "--reranker", args.reranker], env=os.environ) as server:
        url = f"http://127.0.0.1:{port}"
        while True:
            try:
                httpx.get(f"{url}/health")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        try:
            row = asyncio.run(measure(url, server.pid, args))
        finally:
            server.terminate()
    save_rows(MODULE, args, "service/clients", "Fifty clients at once", [row], doc=__doc__, form=",g")


if __name__ == "__main__":
    main()
