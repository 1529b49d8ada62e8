"""What an index costs to build, against plain dense indexing of the same text with the same encoder.

    python -m benchmarks.retrieval.build --data DIR [--set fairytaleqa] [--documents 6]

Nothing is cached. ParetoRAG's paper pays 3.3 times the plain index for encoding every context again.
"""

import time
from collections.abc import Callable
from typing import Any

from benchmarks import record
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.report.tables import format_markdown
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
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--set", default="fairytaleqa", help="default: %(default)s")
    parser.add_argument("--documents", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3, help="the fastest of them counts (%(default)s)")
    args = parser.parse_args()
    encoder = load_encoder()
    documents = load_development_set(args.set, args.data).documents[: args.documents]
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
    plain = rows["plain dense, 200 tokens"][0]
    body = [[name, f"{n:,}", f"{s:.1f}", f"{s / plain:.2f}"] for name, (s, n) in rows.items()]
    text = [
        "# Cost of building an index",
        f"{n_characters:,} characters, {DEFAULT_ENCODER}, CPU seconds with the first search, best of "
        f"{args.rounds}.",
        format_markdown(["index", "units", "CPU s", "against plain 200 tokens"], body),
    ]
    made = record.made(__spec__.name, args)
    record.save("retrieval", "build", made, "\n\n".join(text), {"characters": n_characters, "rows": rows})


if __name__ == "__main__":
    main()
