"""ParetoRAG in a vector store of the caller's: sentences that carry their weighted vectors."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from precise_rag.index.sentence_context import SentenceContextIndex
from precise_rag.protocols import Encoder
from precise_rag.types import Document, FloatArray

_DOCUMENTS = 256
"""Documents weighed at a time."""


class WeightedSentence(NamedTuple):
    """A sentence to store. id: stable, from document and offsets. vector: (d,) of unit length.
    metadata: the document's, with doc_id, start, end, passage_start and passage_end."""

    id: str
    text: str
    vector: FloatArray
    metadata: dict[str, Any]


def weighted_sentences(
    documents: Iterable[Document], encoder: Encoder, *, show_progress: bool = False, **settings: Any
) -> Iterator[WeightedSentence]:
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
            yield WeightedSentence(piece.id, piece.text, vector, {**piece.metadata, **place})
