"""Segmentation of many documents, in order and with few in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat

from precise_rag._progress import progress_bar
from precise_rag.errors import InputError
from precise_rag.protocols import Encoder, SentenceSplitter
from precise_rag.sentences.tables import build_tables
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
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise InputError(f"texts must be a list of texts or Documents, got {type(texts).__name__}")
    alone = map(segment, texts, repeat(None))
    results = alone if encoder is None else _by_tables(segment, texts, encoder, splitter)
    total = len(texts) if isinstance(texts, Sequence) else None
    yield from progress_bar(results, shown=show_progress, desc="segmenting", unit=" documents", total=total)


def _by_tables(
    segment: _Segment, texts: Iterable[str | Document], encoder: Encoder, splitter: SentenceSplitter
) -> Iterator[list[Chunk]]:
    waiting: deque[Document] = deque()

    def remember() -> Iterator[Document]:
        for text in texts:
            waiting.append(text if isinstance(text, Document) else Document("text", text))
            yield waiting[-1]

    for table in build_tables(remember(), encoder, splitter):
        yield segment(waiting.popleft(), table)
