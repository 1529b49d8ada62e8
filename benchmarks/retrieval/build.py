"""What an index costs to build, against plain dense indexing of the same text with the same encoder.

    python -m benchmarks.retrieval.build --data DIR [--sets fairytaleqa] [--documents 6]

Nothing is cached. ParetoRAG's paper pays 3.3 times the plain index for encoding every context again.
"""

import json
import time
from collections.abc import Callable
from typing import Any

from benchmarks.record import RESULTS, parse_arguments
from precise_rag.encoders import load_encoder
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.runs.evaluate import circumstances
from precise_rag.index import DenseIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex

KINDS: dict[str, Callable[..., Any]] = {
    "plain dense, paragraphs": lambda d, e: DenseIndex.build(d, e, chunks="paragraphs"),
    "plain dense, 100 tokens": lambda d, e: DenseIndex.build(d, e, chunks="100 tokens"),
    "plain dense, 200 tokens": lambda d, e: DenseIndex.build(d, e, chunks="200 tokens"),
    "SentenceContextIndex, mean": SentenceContextIndex.build,
    "SentenceContextIndex, encode (the paper's)": lambda d, e: SentenceContextIndex.build(
        d, e, context="encode"
    ),
    "WordSentenceIndex": WordSentenceIndex.build,
    "HybridIndex": HybridIndex.build,
}


def main() -> None:
    parser = parse_arguments(__doc__, "fairytaleqa")
    parser.add_argument("--documents", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3, help="the fastest of them counts (%(default)s)")
    args = parser.parse_args()
    encoder = load_encoder()
    documents = load_development_set(args.sets, args.data).documents[: args.documents]
    encoder.encode([documents[0].text[:200]])
    rows: dict[str, tuple[float, int]] = {}
    for _ in range(args.rounds):  # rounds outside, so that a busy machine slows all kinds alike
        for name, build in KINDS.items():
            started = time.process_time()
            index = build(documents, encoder)
            index.search("Who?", 1)
            seconds = time.process_time() - started
            rows[name] = (min(seconds, rows.get(name, (seconds, 0))[0]), len(index))
    save(args, sum(len(d.text) for d in documents), rows)


def save(args: Any, n_characters: int, rows: dict[str, tuple[float, int]]) -> None:
    """benchmarks/results/retrieval-build-<date>.md"""
    made = circumstances(args.seed)
    plain = rows["plain dense, 200 tokens"][0]
    lines = [
        "# Cost of building an index\n",
        f"`python -m benchmarks.retrieval.build --data DIR --sets {args.sets} --documents {args.documents}`, "
        f"{made['date']}: {made['machine']}, Python {made['python']}; {n_characters:,} characters, "
        f"all-MiniLM-L6-v2, CPU seconds with the first search, best of {args.rounds}.\n",
        "| index | units | CPU s | against plain 200 tokens |",
        "|---|---|---|---|",
        *(f"| {name} | {n:,} | {s:.1f} | {s / plain:.2f} |" for name, (s, n) in rows.items()),
    ]
    path = RESULTS / f"retrieval-build-{made['date']}.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps({"made": made, "rows": rows}, indent=1), encoding="utf-8")
    print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
