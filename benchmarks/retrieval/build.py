"""What an index costs to build, against plain dense indexing of the same text with the same encoder.

    python -m benchmarks.retrieval.build --data DIR [--set fairytaleqa] [--documents 6]

Nothing is cached. ParetoRAG's paper pays 3.3 times the plain index for encoding every context again.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import record
from benchmarks.timing import in_turn
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

    def work(build: Callable[..., Any]) -> int:
        index = build(documents, encoder)
        index.search("Who?", 1)
        return len(index)

    took = in_turn({name: partial(work, build) for name, build in KINDS.items()}, args.rounds)
    best = {name: min(several, key=lambda one: one.cpu) for name, several in took.items()}
    plain = best["plain dense, 200 tokens"].cpu
    rows = [
        {"index": name, "units": one.result, "CPU s": one.cpu}
        | {"against plain 200 tokens": f"{one.cpu / plain:.2f}"}
        for name, one in best.items()
    ]
    size = f"{sum(len(d.text) for d in documents):,} characters, {DEFAULT_ENCODER}"
    also = f"{size}; CPU seconds with the first search, best of {args.rounds}."
    record.save_rows(__spec__.name, args, "retrieval/build", "Cost of building an index", rows, also=also)


if __name__ == "__main__":
    main()
