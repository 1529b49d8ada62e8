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
    found: dict[str, tuple[float, int]] = {}
    for _ in range(args.rounds):  # rounds outside, so that a busy machine slows all kinds alike
        for name, build in KINDS.items():
            started = time.process_time()
            index = build(documents, encoder)
            index.search("Who?", 1)
            seconds = time.process_time() - started
            found[name] = (min(seconds, found.get(name, (seconds, 0))[0]), len(index))
    plain = found["plain dense, 200 tokens"][0]
    rows = [
        {"index": name, "units": n, "CPU s": s, "against plain 200 tokens": f"{s / plain:.2f}"}
        for name, (s, n) in found.items()
    ]
    size = f"{sum(len(d.text) for d in documents):,} characters, {DEFAULT_ENCODER}"
    also = f"{size}; CPU seconds with the first search, best of {args.rounds}."
    record.save_rows(__spec__.name, args, "retrieval/build", "Cost of building an index", rows, also=also)


if __name__ == "__main__":
    main()
