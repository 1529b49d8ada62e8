"""Sentences and chunks with vectors weighted by their context, for your own vector store."""

from collections.abc import Iterable, Iterator, Sized
from dataclasses import replace
from itertools import groupby, islice
from typing import Any, NamedTuple

import numpy as np

from precise_rag.checks import check_number
from precise_rag.encoded import encode_documents
from precise_rag.facts import FACTS_KEY, piece_id, place_facts, read_facts, write_facts
from precise_rag.index.context import chunk_vectors
from precise_rag.index.groups import DocumentSegmenter
from precise_rag.index.index import unique_documents
from precise_rag.index.sentence_context import SentenceContextIndex
from precise_rag.protocols import Encoder
from precise_rag.segmentation import Segmenter
from precise_rag.sentences.sentence_tables import tables_of
from precise_rag.structure import read_structure
from precise_rag.structure.base64_runs import is_base64
from precise_rag.titles import PATH_KEYS, paths_below, titles_of, with_header_path
from precise_rag.types import Candidate, Chunk, Document, FloatArray, Span
from precise_rag.vectors import offsets_of, unit_rows

WHOLE = 0.5
"""Largest weight of a chunk encoded as a whole."""
_READ = 256
"""Tokens that common encoders read; a longer chunk's own vector has less weight, in proportion."""
_NEAR = 3
"""Sentences on each side that the window of a sentence has at least, as in LlamaIndex."""
_DOCUMENTS = 256
_CHUNKS = 128
"""Documents and chunks per batch."""


class WeightedPiece(NamedTuple):
    """A sentence or chunk to store.

    id: a UUID made from the document's id and the place in it; the same in every run.
    vector: (d,) weighted vector; of unit length, except with `similarity="dot"`.
    metadata: the document's; `precise_rag.read_facts` reads the document's id, start and end, and of a
        sentence also its passage and its window, from one further entry.
    """

    id: str
    text: str
    vector: FloatArray
    metadata: dict[str, Any]

    @property
    def chunk(self) -> Chunk:
        """The piece without its vector."""
        facts = read_facts(self.metadata)
        return Chunk(facts["doc_id"], facts["start"], facts["end"], self.text, metadata=self.metadata)


def weighted_sentences(
    documents: Iterable[Document], encoder: Encoder, *, show_progress: bool = False, **settings: Any
) -> Iterator[WeightedPiece]:
    """Yield every sentence with its vector weighted by its context; none that is base64.

    A store that compares these vectors by cosine with `encoder.encode_queries([query])[0]` gives the
    ranking of `SentenceContextIndex`.

    documents: the documents; read in batches, so they may come from a generator; ids must be unique.
    settings: fields of `ContextSettings`.
    """
    remaining = unique_documents(documents)
    while batch := list(islice(remaining, _DOCUMENTS)):
        index = SentenceContextIndex.build(batch, encoder, show_progress=show_progress, **settings)
        paths = {d.id: paths_below(titles_of(d.metadata, PATH_KEYS), read_structure(d.text)) for d in batch}
        for doc_id, group in groupby(index.weighted_vectors(), lambda one: one[0].doc_id):
            sentences, vectors = zip(*group, strict=True)
            for row, (sentence, vector) in enumerate(zip(sentences, vectors, strict=True)):
                if is_base64(sentence.text):
                    continue
                near = sentences[max(row - _NEAR, 0) : row + _NEAR + 1]
                start, end = sentence.passage or (sentence.start, sentence.end)
                above = paths[doc_id](sentence.start, sentence.end)
                below = replace(sentence, metadata=with_header_path(sentence.metadata, above))
                window = [min(start, near[0].start), max(end, near[-1].end)]
                yield _piece(below, vector, passage=[start, end], window=window)


def weighted_chunks(
    documents: Iterable[Document],
    encoder: Encoder,
    segmenter: DocumentSegmenter | str = "small",
    *,
    alpha: float = 0.6,
    whole: float = WHOLE,
    show_progress: bool = False,
) -> Iterator[WeightedPiece]:
    """Yield every chunk with its vector weighted by the text around it.

    The vector is a weighted mean of the encoder's own vector of the chunk and the vector in context, which is
    made from the vectors of the sentences. With `whole=0` only sentences are encoded, each once, and a store
    that compares these vectors by cosine gives the ranking of `DenseIndex` with `chunk_vectors="context"`.

    documents: as for `weighted_sentences`.
    segmenter: a segmenter, or the name or path of a trained one.
    alpha: weight of a chunk's sentences against the text around it (0 to 1).
    whole: weight of the chunk encoded as a whole against the vector in context (0 to 1); of a chunk of n
        tokens at most 256 / n, because common encoders read no more.
    """
    check_number("alpha", alpha, least=0, most=1)
    check_number("whole", whole, least=0, most=1)
    if isinstance(segmenter, str):
        segmenter = Segmenter.from_pretrained(segmenter)
    pieces = _chunks_in_context(documents, encoder, segmenter, alpha, show_progress)
    while batch := list(islice(pieces, _CHUNKS)):
        chunks, in_context, n_tokens = zip(*batch, strict=True)
        vectors = np.stack(in_context)
        if whole:
            own = encode_documents(encoder, [chunk.text.strip() for chunk in chunks])
            weights = np.minimum(whole, _READ / np.maximum(n_tokens, 1)).astype(np.float32)[:, None]
            vectors = unit_rows(weights * own + (1 - weights) * vectors)
        yield from map(_piece, chunks, vectors)


def _chunks_in_context(
    documents: Iterable[Document],
    encoder: Encoder,
    segmenter: DocumentSegmenter,
    alpha: float,
    show_progress: bool,
) -> Iterator[tuple[Chunk, FloatArray, int]]:
    """Chunks, their vectors in context, and their tokens."""
    unique = unique_documents(documents)
    read = list(unique) if isinstance(documents, Sized) else unique
    splitter = getattr(segmenter, "splitter", None)
    for document, table in tables_of(read, encoder, show_progress, splitter):
        if not len(table):
            continue
        assert table.vectors is not None
        chunks = segmenter.segment(document, table)
        places = table.spans[:, 0]
        starts = np.searchsorted(places, [chunk.start for chunk in chunks], side="right") - 1
        ends = np.maximum(np.searchsorted(places, [chunk.end for chunk in chunks]), starts + 1)
        vectors = chunk_vectors(table.vectors, table.n_tokens, starts, ends, alpha=alpha)
        sums = offsets_of(table.n_tokens)
        yield from zip(chunks, vectors, (sums[ends] - sums[starts]).tolist(), strict=True)


def _piece(cut: Candidate | Chunk, vector: FloatArray, **facts: Any) -> WeightedPiece:
    """The piece to store; its place and `facts` are in the metadata."""
    place = place_facts(cut.doc_id, Span(cut.start, cut.end))
    metadata = {**cut.metadata, FACTS_KEY: write_facts(place | facts)}
    return WeightedPiece(piece_id(cut.doc_id, cut.start, cut.end), cut.text, vector, metadata)
