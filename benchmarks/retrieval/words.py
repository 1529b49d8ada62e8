"""Questions a second of the word filter against plain dense search, as the collection grows.

    python -m benchmarks.retrieval.words --data DIR [--sizes 5000,20000,80000]

Real sentences and questions; vectors are hashed words, since only time is measured here (what is found:
`python -m benchmarks.papers.recursive`). The query vector is given, so encoding is not in the time.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.record import RESULTS
from precise_rag.documents import read_documents
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.evaluate import circumstances
from precise_rag.index import DenseIndex, WordSentenceIndex
from precise_rag.testing import HashEncoder

KINDS: dict[str, tuple[Any, dict[str, int]]] = {
    "plain dense": (DenseIndex, {}),
    "words, then meaning (the paper's)": (WordSentenceIndex, {}),
    "at least 2 shared words": (WordSentenceIndex, {"min_overlap": 2}),
    "at most 500 candidates": (WordSentenceIndex, {"max_candidates": 500}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("PRECISE_DATA"))
    parser.add_argument("--sizes", default="5000,20000,80000")
    parser.add_argument("--questions", type=int, default=100)
    args = parser.parse_args()
    encoder = HashEncoder(384)
    asked = load_development_set("squad", args.data).sample(args.questions).questions
    vectors = encoder.encode_queries([question.text for question in asked])
    everything = list(read_documents(args.data / "train_docs_wikipedia.jsonl.gz"))
    rows = []
    for size in map(int, args.sizes.split(",")):
        documents = everything[: max(1, round(len(everything) * size / 150_000))]
        for name, (kind, options) in KINDS.items():
            index = kind.build(documents, encoder, chunks="sentences", **options)
            index.search("warm", 10, vector=vectors[0])
            started = time.perf_counter()
            for question, vector in zip(asked, vectors, strict=True):
                index.search(question.text, 10, vector=vector)
            per_second = len(asked) / (time.perf_counter() - started)
            share = 1.0
            if kind is WordSentenceIndex:
                passing = [len(index.candidate_rows(question.text)) for question in asked]
                share = float(np.mean(passing)) / len(index)
            rows.append(f"| {len(index):,} | {name} | {100 * share:.1f} | {per_second:.0f} |")
            print(rows[-1], flush=True)
    made = circumstances(0)
    command = f"python -m benchmarks.retrieval.words --data DIR --sizes {args.sizes}"
    head = (
        f"# The word filter's speed\n\n`{command}`, {made['date']}: {made['machine']}, Python "
        f"{made['python']}; 384 dimensions, {len(asked)} questions of SQuAD on Wikipedia sentences.\n\n"
        "| sentences | search | compared by meaning (%) | questions/s |\n|---|---|---|---|\n"
    )
    path = RESULTS / f"retrieval-words-{made['date']}.md"
    path.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
