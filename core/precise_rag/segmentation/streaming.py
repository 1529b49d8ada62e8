"""Segmentation of many documents, in order and with few in memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat

from precise_rag._progress import progress_bar
from precise_rag.checks import items_of
from precise_rag.protocols import Encoder, SentenceSplitter
from precise_rag.sentences.sentence_tables import tables_of
from precise_rag.types import Chunk, Document, SentenceTable

_Segment = Callable[[str | Document, SentenceTable | None], list[Chunk]]


def segment_each(
    segment: _Segment,
    texts: Iterable[str | Document],
    encoder: Encoder | None,
    splitter: SentenceSplitter,
    *,
    show_progress: bool,
) -> Iterator[list[Chunk]]:
    """Yield the chunks of each text, in order; with an encoder, sentences of several are encoded together.

    show_progress: show a progress bar; its length is known if `texts` is a sequence.
    Raises InputError if `texts` is a single text or cannot be iterated over.
    """
    given = items_of("texts", texts, object)
    documents = (text if isinstance(text, Document) else Document("text", text) for text in given)
    if encoder is None:
        total = len(texts) if isinstance(texts, Sequence) else None
        bar = progress_bar(documents, shown=show_progress, total=total, desc="segmenting", unit="document")
        yield from map(segment, bar, repeat(None))
        return
    read = list(documents) if isinstance(texts, Sequence) else documents
    for document, table in tables_of(read, encoder, show_progress, splitter):
        yield segment(document, table if len(table) else None)
