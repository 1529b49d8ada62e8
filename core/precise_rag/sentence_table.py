"""Documents to sentence tables: split once, encode each sentence once, many documents at a time."""

from collections.abc import Iterable, Iterator, Sized

import numpy as np
from tqdm import tqdm

from precise_rag.encoders.rows import estimate_tokens
from precise_rag.protocols import Encoder, SentenceSplitter
from precise_rag.sentences import load_splitter, paragraph_ids
from precise_rag.types import Document, IntArray, SentenceTable

_BATCH_SENTENCES = 2_048
"""Sentences gathered from several documents before the encoder is called."""


def build_tables(
    documents: Iterable[Document],
    encoder: Encoder | None,
    splitter: SentenceSplitter | None = None,
    show_progress: bool = False,
    *,
    vectors: bool = True,
) -> Iterator[SentenceTable]:
    """One table per document, in order. `documents` may be endless: it is read in batches.

    The text encoded is the sentence without surrounding white space; a text that occurs again in
    the same batch is not encoded again. Without an encoder the tables have no vectors and token
    counts are estimates; with `vectors=False` it only counts tokens.
    """
    splitter = splitter or load_splitter()
    total = len(documents) if isinstance(documents, Sized) else None
    with tqdm(total=total, desc="sentences", unit="document", disable=not show_progress) as progress:
        for batch in _batches(documents, splitter):
            yield from _encode(batch, encoder, vectors)
            progress.update(len(batch))


_Split = tuple[Document, IntArray, IntArray, list[str]]


def _batches(documents: Iterable[Document], splitter: SentenceSplitter) -> Iterator[list[_Split]]:
    batch: list[_Split] = []
    waiting = 0
    for document in documents:
        spans = splitter.split(document.text)
        texts = [document.text[start:end].strip() for start, end in spans]
        rows = np.array(spans, dtype=np.int64).reshape(-1, 2)
        batch.append((document, rows, paragraph_ids(document.text, spans), texts))
        waiting += len(texts)
        if waiting >= _BATCH_SENTENCES:
            yield batch
            batch, waiting = [], 0
    if batch:
        yield batch


def _encode(batch: list[_Split], encoder: Encoder | None, vectors: bool) -> Iterator[SentenceTable]:
    texts = [text for *_, sentences in batch for text in sentences]
    first_of = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    unique = list(first_of)
    places = np.array([first_of[text] for text in texts], dtype=np.int64)
    n_tokens = (encoder.count_tokens(unique) if encoder else estimate_tokens(unique))[places]
    encoded = encoder.encode(unique)[places] if encoder and vectors else None
    first = 0
    for document, spans, paragraphs, sentences in batch:
        rows = slice(first, first + len(sentences))
        first = rows.stop
        yield SentenceTable(
            doc_id=document.id,
            spans=spans,
            paragraphs=paragraphs,
            n_tokens=n_tokens[rows],
            vectors=None if encoded is None else encoded[rows],
        )
