"""For a vector store of the caller's: sentences and chunks that carry vectors weighted by their context."""

from collections.abc import Iterable, Iterator
from itertools import islice, tee
from typing import Any, NamedTuple

import numpy as np

from precise_rag.index.arrays.chunk_vectors import chunk_vectors
from precise_rag.index.arrays.passages import Segments
from precise_rag.index.sentence_base import check_alpha
from precise_rag.index.sentence_context import SentenceContextIndex
from precise_rag.protocols import Encoder
from precise_rag.segmentation import Segmenter
from precise_rag.sentences.tables import build_tables
from precise_rag.types import Document, FloatArray

_DOCUMENTS = 256
"""Documents weighed at a time."""


class WeightedPiece(NamedTuple):
    """A sentence or chunk to store. id: stable, from document and offsets. vector: (d,) of unit length.
    metadata: the document's, with doc_id, start and end, and for a sentence passage_start and passage_end."""

    id: str
    text: str
    vector: FloatArray
    metadata: dict[str, Any]


def weighted_sentences(
    documents: Iterable[Document], encoder: Encoder, *, show_progress: bool = False, **settings: Any
) -> Iterator[WeightedPiece]:
    """Every sentence with its vector weighed by its context; `settings` as for SentenceContextIndex.

    A store that holds these vectors and compares them by cosine with `encoder.encode_queries([query])`
    gives the ranking of that index. Documents are read as they are needed, so there may be any number.
    """
    remaining = iter(documents)
    while batch := list(islice(remaining, _DOCUMENTS)):
        index = SentenceContextIndex.build(batch, encoder, show_progress=show_progress, **settings)
        for piece, vector in index.weighted_vectors():
            start, end = piece.passage or (piece.start, piece.end)
            place = {
                "doc_id": piece.doc_id,
                "start": piece.start,
                "end": piece.end,
                "passage_start": start,
                "passage_end": end,
            }
            yield WeightedPiece(piece.id, piece.text, vector, {**piece.metadata, **place})


def weighted_chunks(
    documents: Iterable[Document],
    encoder: Encoder,
    segmenter: Segments | str = "small",
    *,
    alpha: float = 0.6,
    show_progress: bool = False,
) -> Iterator[WeightedPiece]:
    """Every chunk of `segmenter`, tiling its document, with its vector weighed by the text around it.

    Only sentences are encoded, each once. alpha: weight of the chunk, 1 for the chunk alone. A store
    that holds these vectors gives the ranking of `DenseIndex` with `chunk_vectors="context"`.
    Documents are read as they are needed; blank ones have no chunks.
    """
    check_alpha(alpha)
    cut = Segmenter.from_pretrained(segmenter) if isinstance(segmenter, str) else segmenter
    read, waiting = tee(document for document in documents if document.text.strip())
    tables = build_tables(read, encoder, getattr(cut, "splitter", None), show_progress)
    for document, table in zip(waiting, tables, strict=True):
        assert table.vectors is not None
        chunks = cut.segment(document, table)
        places = table.spans[:, 0]
        starts = np.searchsorted(places, [chunk.start for chunk in chunks], side="right") - 1
        ends = np.maximum(np.searchsorted(places, [chunk.end for chunk in chunks]), starts + 1)
        vectors = chunk_vectors(table.vectors, table.n_tokens, starts, ends, alpha=alpha)
        for chunk, vector in zip(chunks, vectors, strict=True):
            place = {"doc_id": chunk.doc_id, "start": chunk.start, "end": chunk.end}
            yield WeightedPiece(chunk.id, chunk.text, vector, {**chunk.metadata, **place})
