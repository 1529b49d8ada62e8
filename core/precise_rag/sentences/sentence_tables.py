"""Building sentence tables: each document is split once and each sentence encoded once."""

from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, pairwise, tee
from typing import NamedTuple, TypeVar

import numpy as np

from precise_rag._progress import progress_bar
from precise_rag.encoded import count_tokens, encode_documents
from precise_rag.errors import InputError
from precise_rag.protocols import Encoder, SentenceSplitter
from precise_rag.sentences.block_spans import paragraph_ids
from precise_rag.sentences.splitters import load_sentence_splitter, split_structured
from precise_rag.sentences.trimming import has_words, without_rules
from precise_rag.structure import read_structure
from precise_rag.structure.base64_runs import is_base64
from precise_rag.structure.marks import without_tags
from precise_rag.structure.running import without_page_lines
from precise_rag.types import Document, IntArray, SentenceTable

T = TypeVar("T")
_BATCH_CHARACTERS = 2**18
"""Text gathered from several documents before the encoder is called."""


def tables_of(
    documents: Iterable[Document],
    encoder: Encoder,
    show_progress: bool = False,
    splitter: SentenceSplitter | None = None,
    *,
    vectors: bool = True,
) -> Iterator[tuple[Document, SentenceTable]]:
    """Yield each document with its table: its sentences, their tokens and their vectors.

    documents: read lazily, two batches ahead; may be endless. The table of one without a word is empty.
    encoder: encodes and counts tokens.
    show_progress: whether to show a bar of the documents, and the encoder's below it.
    splitter: splits the text; default `load_sentence_splitter()`.
    vectors: False leaves the vectors out; the encoder then only counts tokens.

    Sentences are encoded without surrounding white space and without the rules of tables, and only once per
    batch if they repeat; the vectors of base64 are zero. While one batch is encoded, another thread splits
    the next and counts its tokens.
    """
    splitter = splitter or load_sentence_splitter()
    total = len(documents) if isinstance(documents, Sized) else None
    read, waiting = tee(documents)
    with_words = (document for document in read if has_words(document.text))
    batches = in_batches(with_words, _BATCH_CHARACTERS, lambda document: len(document.text))
    bar = progress_bar(waiting, shown=show_progress, total=total, desc="documents", unit="document")
    none = np.zeros(0, dtype=np.int64)
    no_vectors = np.zeros((0, encoder.dimension), dtype=np.float32)
    with ThreadPoolExecutor(1) as worker:
        coming = (worker.submit(_split, batch, encoder, splitter) for batch in batches)
        tables = _tables(coming, encoder, show_progress, vectors)
        for document in bar:
            empty = SentenceTable(document.id, none.reshape(0, 2), none, none, no_vectors)
            yield document, next(tables) if has_words(document.text) else empty


class _Batch(NamedTuple):
    """Documents with their sentences.

    texts: the distinct sentences.
    places: index into texts of each sentence of all documents.
    """

    documents: list[Document]
    spans: list[IntArray]
    paragraphs: list[IntArray]
    texts: list[str]
    places: IntArray
    n_tokens: IntArray


def in_batches(items: Iterable[T], least: int, size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in their order, as many at a time as reach the size `least` together."""
    batch: list[T] = []
    waiting = 0
    for item in items:
        batch.append(item)
        waiting += size_of(item)
        if waiting >= least:
            yield batch
            batch, waiting = [], 0
    if batch:
        yield batch


def _split(documents: list[Document], encoder: Encoder, splitter: SentenceSplitter) -> _Batch:
    spans, paragraphs, places = [], [], []
    row_of: dict[str, int] = {}
    for document in documents:
        text = document.text
        try:
            structure = read_structure(text)
            sentences = without_page_lines(text, split_structured(text, structure, splitter))
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise InputError(f"document {document.id!r:.100}: {reason}") from error
        spans.append(np.array(sentences, dtype=np.int64).reshape(-1, 2))
        paragraphs.append(paragraph_ids(text, sentences))
        shown = (without_rules(text[start:end]) for start, end in sentences)
        read = (without_tags(text) if structure.format == "html" else text for text in shown)
        places += [row_of.setdefault(text, len(row_of)) for text in read]
    texts, rows = list(row_of), np.array(places, dtype=np.int64)
    return _Batch(documents, spans, paragraphs, texts, rows, count_tokens(encoder, texts)[rows])


def _tables(
    coming: Iterator[Future[_Batch]], encoder: Encoder, show_progress: bool, vectors: bool
) -> Iterator[SentenceTable]:
    for ready, _ in pairwise(chain(coming, (None,))):  # the next one is submitted before this is encoded
        assert ready is not None
        batch = ready.result()
        encoded = None
        if vectors:
            encoded = encode_documents(encoder, batch.texts, show_progress=show_progress)[batch.places]
            encoded[np.array([is_base64(text) for text in batch.texts], dtype=np.bool_)[batch.places]] = 0
        first = 0
        for document, spans, paragraphs in zip(batch.documents, batch.spans, batch.paragraphs, strict=True):
            rows = slice(first, first + len(spans))
            first = rows.stop
            yield SentenceTable(
                doc_id=document.id,
                spans=spans,
                paragraphs=paragraphs,
                n_tokens=batch.n_tokens[rows],
                vectors=None if encoded is None else encoded[rows],
                encoder=getattr(encoder, "name", None) if vectors else None,
            )
