"""Word→sentence retrieval at a size: questions a second against comparing every sentence, with equal results.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.scale.words --data DIR [--sentences 1000000]

The naive search multiplies the question's vector with all vectors in float32 and keeps the best of the
sentences that share a word with it. Sentences are those of the development sets and of Wikipedia, and then
the same again until there are enough; their vectors are made from their words (`HashEncoder`), and repeated
ones are moved a little, so that no two are equal. The words of the naive search cost nothing. Time is that of
the processor, with one thread, which the variable sets: the median of three rounds over the questions, one
search after the other.
"""

import os
import time
from itertools import islice

import numpy as np

from benchmarks import record
from benchmarks.retrieval.real import real_documents
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.index import WordSentenceIndex
from precise_rag.index.arrays.collection import Collection
from precise_rag.index.rows.segments import Part, Segment
from precise_rag.testing import HashEncoder
from precise_rag.types import Document

TOP_K, DIMENSION, REAL, ROUNDS = 10, 384, 20_000, 3


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--sentences", type=int, default=1_000_000, help="about (%(default)s)")
    parser.add_argument("--queries", type=int, default=50)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    asked = load_development_set("squad", args.data).sample(args.queries).questions
    encoder = HashEncoder(DIMENSION)
    index = repeated(WordSentenceIndex(encoder), real_documents(args.data), args.sentences)
    vectors = index._rows.parts[0].segment.collection.columns["vectors"]
    spent, shares, same = np.zeros((ROUNDS, 2)), [], 0.0
    for number in range(ROUNDS + 1):  # the first round brings everything into memory
        shares, same = [], 0.0
        for question in asked:
            (query,) = encoder.encode_queries([question.text])
            passing = index.candidate_rows(question.text)
            started = time.process_time()
            scores = (vectors @ query)[passing]
            best = np.argsort(-scores, kind="stable")[:TOP_K] if len(scores) <= TOP_K else top(scores)
            between = time.process_time()
            found = index.search(question.text, TOP_K, vector=query)
            if number:
                spent[number - 1] += between - started, time.process_time() - between
            shares.append(len(passing) / len(index))
            same += np.allclose([candidate.score for candidate in found], scores[best], atol=1e-5)
    rates = dict(zip(("naive", "word→sentence"), len(asked) / np.median(spent, axis=0), strict=True))
    facts = {"sentences": len(index), "passing": float(np.mean(shares)), "same": same / len(asked)}
    made = record.made(__spec__.name, args, **{"load at the beginning": round(load, 1)})
    lines = [[name, f"{rate:.1f}", f"{rate / rates['naive']:.1f}"] for name, rate in rates.items()]
    table = format_markdown(["", "questions a second of CPU", "times the naive"], lines)
    shared, equal = 100 * facts["passing"], 100 * facts["same"]
    body = (
        f"{table}\n\n{len(index):,} sentences; {shared:.1f} % share a word with a question; the same best "
        f"{TOP_K} scores for {equal:.0f} % of {len(asked)} questions."
    )
    title = "# Word→sentence retrieval at a size\n\n"
    print(record.save("scale", "words", made, title + body, facts | rates))


def top(scores: np.ndarray) -> np.ndarray:
    """The rows of the best scores, best first."""
    best = np.argpartition(-scores, TOP_K)[:TOP_K]
    return best[np.argsort(-scores[best], kind="stable")]


def repeated(index: WordSentenceIndex, documents: object, n_sentences: int) -> WordSentenceIndex:
    """The index of real documents, repeated."""
    while len(index) < min(REAL, n_sentences) and (more := list(islice(documents, 50))):  # type: ignore[call-overload]
        index.add(more)
    index.compact()
    segment = index._rows.parts[0].segment
    once, random = segment.collection, np.random.default_rng(0)
    times = max(1, n_sentences // len(once))
    columns = {
        name: np.tile(column, (times,) + (1,) * (column.ndim - 1)) for name, column in once.columns.items()
    }
    vectors = columns["vectors"]
    for first in range(len(once), len(vectors), len(once)):
        rows = vectors[first : first + len(once)]
        rows += random.normal(scale=0.01, size=rows.shape).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sizes = np.tile(np.diff(once.offsets), times)
    named = {
        f"{copy}-{name}": Document(f"{copy}-{name}", document.text)
        for copy in range(times)
        for name, document in once.documents.items()
    }
    collection = Collection(named, np.concatenate([[0], np.cumsum(sizes)]), columns)
    index._rows.parts = (Part(Segment(collection, segment.words)),)
    index.search("warm", TOP_K)
    return index


if __name__ == "__main__":
    main()
