"""What the pipeline sends with embeddings of another geometry, against the packaged one.

    python -m benchmarks.retrieval.embeddings --data DIR [--vectors FILE]

The same vectors as an application may bring them: rotated, scaled, moved into a narrow cone as those of many
services, cut short, rounded to 8 bits; and vectors that say nothing. "evidence": share of the marked evidence
that is sent; "tokens": what is sent, on average; "growth": of tokens over the packaged vectors; "gain": of
evidence over them, documents redrawn in pairs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.questions import unseen
from benchmarks.sent import sent_by
from precise_rag import HybridIndex, PreciseRAG
from precise_rag.encoded import encode_documents, encode_queries
from precise_rag.protocols import Encoder
from precise_rag.types import FloatArray, IntArray
from training.candidate_lists import read_set

SETS = ("squad", "fairytaleqa")
_DIMENSION = 384

Change = Callable[[FloatArray], FloatArray]


def changes(seed: int) -> Mapping[str, Change]:
    """Return what is done to vectors, by the name in the table; the first changes nothing."""
    draw = np.random.default_rng(seed)
    rotation = np.linalg.qr(draw.normal(size=(_DIMENSION, _DIMENSION)))[0].astype(np.float32)
    direction = draw.normal(size=_DIMENSION).astype(np.float32)
    direction /= np.linalg.norm(direction)
    noise = draw.normal(size=(_DIMENSION, _DIMENSION)).astype(np.float32)
    return {
        "as they are": lambda v: v,
        "rotated": lambda v: v @ rotation,
        "scaled by 3": lambda v: 3 * v,
        "a little shifted": lambda v: v + 0.5 * direction,
        "in a cone": lambda v: v + 1.5 * direction,
        "in a narrow cone": lambda v: v + 3 * direction,
        "a narrow cone, one more dimension": lambda v: np.column_stack([v, np.full(len(v), 3, np.float32)]),
        "the first 192 of 384 dimensions": lambda v: v[:, :192],
        "8 bits": lambda v: np.round(v * (127 / 0.25)).clip(-127, 127),
        "saying nothing": lambda v: np.sin(1e4 * (v @ noise)),
    }


class Changed:
    """An encoder whose vectors are those of another one, changed and brought to unit length."""

    def __init__(self, encoder: Encoder, name: str, change: Change) -> None:
        self.encoder, self.name, self.change = encoder, name, change
        self.dimension = change(np.zeros((1, encoder.dimension), dtype=np.float32)).shape[1]

    def encode(self, texts: Sequence[str], **options: Any) -> FloatArray:
        return self._changed(encode_documents(self.encoder, texts))

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        return self._changed(encode_queries(self.encoder, queries))

    def count_tokens(self, texts: Sequence[str]) -> IntArray:
        return self.encoder.count_tokens(texts)

    def _changed(self, vectors: FloatArray) -> FloatArray:
        rows = np.asarray(self.change(vectors), dtype=np.float32)
        found: FloatArray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        return found


def measure(name: str, options: Any, names: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield a row for each change on one set."""
    dataset = unseen(read_set(f"dev/{name}", options.data), name)
    asked = dataset.sample(options.sample, seed=options.seed).questions
    encoder, first = record.cached_encoder(options), None
    for label, change in changes(options.seed).items():
        if names and label not in names:
            continue
        index = HybridIndex.build(dataset.documents, Changed(encoder, label, change))
        sent = sent_by(PreciseRAG(index), asked)
        first = first or sent
        growth = 100 * (float(sent.tokens.mean() / first.tokens.mean()) - 1)
        row = {"set": name, "questions": len(asked), "vectors": label, **sent.row(first)}
        yield {key: row.pop(key) for key in list(row)[:5]} | {"growth %": growth} | row


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, ",".join(SETS), sample=40)
    parser.add_argument("--changes", default="", help="only these, separated by ;")
    options = parser.parse_args()
    wanted = [name for name in options.changes.split(";") if name]
    rows = record.printed(row for name in options.sets.split(",") for row in measure(name, options, wanted))
    title = "Embeddings of another geometry"
    record.save_rows(__spec__.name, options, "retrieval/embeddings", title, rows)


if __name__ == "__main__":
    main()
