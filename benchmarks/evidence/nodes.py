"""What is left of stock chunks when only their evidence is sent.

    python -m benchmarks.evidence.nodes --data DIR [--reranker NAME] [--sets NAME…] [--sample N]

LangChain's recursive splitter at 512 tokens, the 10 best chunks by BM25. "saved": share of the chunks' tokens
that is not sent. "lost": share of the evidence in the chunks that is not sent, over the questions whose
chunks hold any, with its 95 % interval, documents redrawn. Nothing was trained on these documents.
Documentation is Markdown with its headings in the text; its questions are those of
`benchmarks/retrieval/headings.py`, and its chunks know no titles.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.questions import UNSEEN
from benchmarks.retrieval.headings import DOCUMENTATION, Asked, documentation, question_sets
from benchmarks.sent import covered
from benchmarks.timing import timed
from precise_rag.encoders import load_encoder
from precise_rag.evaluation import bootstrap_interval
from precise_rag.evaluation.splitters import load_splitter
from precise_rag.evaluation.units import UnitIndex
from precise_rag.evidence import EvidenceExtractor
from precise_rag.rerank import load_reranker
from precise_rag.tokens import estimate_tokens
from training.candidate_lists import HALVED

SETS = (*HALVED, *UNSEEN)
N_CHUNKS = 10


def collections(options: Any) -> Iterator[Asked]:
    """Yield the question sets, and the documentation without the titles of its pages."""
    yield from question_sets(options.sets, options.data, options.sample, seed=1)
    for asked in documentation(options):
        yield asked._replace(documents=[replace(page, metadata={}) for page in asked.documents])


def measure(asked: Asked, options: Any) -> dict[str, Any]:
    """Tokens and evidence before and after, over the questions of one collection."""
    encoder = load_encoder()
    split = load_splitter("langchain-recursive", encoder, chunk_size=512)
    units = [unit for document in asked.documents for unit in split(document)]
    index = UnitIndex(asked.documents, units, encoder, "bm25")
    extractor = EvidenceExtractor(load_reranker(options.reranker))
    before, after, lost, groups, seconds = [], [], [], [], 0.0
    for question in asked.questions:
        chunks = index.search(question.text, N_CHUNKS)
        took = timed(partial(extractor.extract, question.text, chunks))
        spans = took.result.excerpts
        seconds += took.cpu
        before.append(sum(estimate_tokens(c.text) for c in chunks))
        after.append(sum(estimate_tokens(s.text) for s in spans))
        if held := covered(question, chunks):
            lost.append(1.0 - covered(question, spans) / held)
            groups.append(question.group)
    interval = bootstrap_interval(lost, groups=groups)
    return {
        "set": asked.name,
        "questions": len(before),
        "tokens of the chunks": round(np.mean(before)),
        "tokens sent": round(np.mean(after)),
        "saved": f"{100 * (1 - sum(after) / sum(before)):.0f} %",
        "evidence lost": "{:.1f} % ({:.1f} to {:.1f})".format(*(100 * value for value in interval)),
        "ms of CPU": round(1e3 * seconds / len(before)),
    }


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    parser.add_argument("--reranker", default="default", help="(%(default)s)")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--sample", type=int, default=100, help="questions a set at most (%(default)s)")
    parser.add_argument("--documentation", default=DOCUMENTATION, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of questions about documentation (%(default)s)")
    options = parser.parse_args()
    rows = record.printed(measure(asked, options) for asked in collections(options))
    name = f"evidence/nodes-{options.reranker}"
    record.save_rows(
        __spec__.name, options, name, "Evidence in stock chunks", rows, reranker=options.reranker
    )


if __name__ == "__main__":
    main()
