"""What Ray costs: the same documents into LanceDB by one process, and by one and two workers of Ray.

    python -m benchmarks.scale.cluster --data DIR [--documents 200]

Text is that of the development sets, encoded with the default encoder; OMP_NUM_THREADS=1 gives each process
one thread. "CPU s" is that of this process, of the workers and of the process that starts them. Both times
include the start of Ray and the loading of the encoder in each worker; "start" is two documents alone.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.retrieval.real import real_documents
from benchmarks.scale.build import cpu_of_server
from precise_rag.encoders import load_encoder
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.index import DatabaseIndex
from precise_rag.scale import embed_to_database
from precise_rag.types import Document

BATCH = 16


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--documents", type=int, default=200)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    documents = list(islice(real_documents(args.data), args.documents))
    rows = []
    for name, workers in (("one process", 0), ("Ray, 1 worker", 1), ("Ray, 2 workers", 2)):
        cells = [name]
        for given in (documents[:2], documents):
            wall, cpu, n_sentences = spent(given, workers)
            cells += [f"{wall:.1f}", f"{cpu:.1f}"]
        rate = n_sentences / float(cells[4])
        rows.append([*cells, f"{rate:.0f}"])
        print(rows[-1], flush=True)
    made = record.made(__spec__.name, args, **{"load at the beginning": round(load, 1)})
    header = ["", "start, s", "start, CPU s", "all, s", "all, CPU s", "sentences a CPU second"]
    title = (
        f"# {len(documents)} documents, {n_sentences:,} sentences, with and without Ray (load {load:.0f})\n\n"
    )
    data = {"rows": [dict(zip(header, row, strict=True)) for row in rows]}
    print(record.save("scale", "cluster", made, title + format_markdown(header, rows), data))


def spent(documents: Sequence[Document], workers: int) -> tuple[float, float, int]:
    """Seconds by the clock and of CPU to fill a collection, and its number of sentences."""
    with tempfile.TemporaryDirectory() as folder:
        location = str(Path(folder) / "rows.lance")
        began, cpu = time.perf_counter(), time.process_time()
        others = 0.0
        if workers:
            others = by_ray(documents, location, workers)
            index = DatabaseIndex(location, load_encoder())
        else:
            index = DatabaseIndex(location, load_encoder())
            for first in range(0, len(documents), BATCH):
                index.add(documents[first : first + BATCH])
        return time.perf_counter() - began, time.process_time() - cpu + others, len(index)


def by_ray(documents: Sequence[Document], location: str, workers: int) -> float:
    """Fill a collection with workers of Ray. Returns the seconds of CPU of Ray's processes."""
    # not 15, with which workers hardly run beside other work; read at import
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    import ray

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        embed_to_database(documents, location, workers=workers, batch_documents=BATCH)
        return sum(cpu_of_server(raylet) for raylet in raylets())
    finally:
        ray.shutdown()


def raylets() -> list[int]:
    """The processes of this session that start Ray's workers."""

    def command(process: Path) -> Any:
        try:
            return (process / "cmdline").read_bytes().split(b"\0")[0]
        except OSError:
            return b""

    mine = os.getsid(0)
    found = [path for path in Path("/proc").glob("[0-9]*") if command(path).endswith(b"/raylet")]
    return [int(path.name) for path in found if os.getsid(int(path.name)) == mine]


if __name__ == "__main__":
    main()
