"""Segmentation of many documents, in order and with few in memory."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from precise_rag._progress import progress_bar
from precise_rag.checks import items_of
from precise_rag.protocols import Encoder, SentenceSplitter
from precise_rag.sentences.sentence_tables import tables_of
from precise_rag.types import Chunk, Document, SentenceTable


class StreamingSegmenter(ABC):
    """A segmenter; of many texts, sentences of several are encoded together if it has an encoder."""

    encoder: Encoder | None
    splitter: SentenceSplitter

    @abstractmethod
    def segment(self, text: str | Document, table: SentenceTable | None = None) -> list[Chunk]:
        """Split a text into chunks."""

    def segment_many(
        self, texts: Iterable[str | Document], *, show_progress: bool = False
    ) -> Iterator[list[Chunk]]:
        """Yield the chunks of each text, in order; only a few texts are in memory at once.

        show_progress: show a progress bar; its length is known if `texts` is a sequence.
        Raises InputError if `texts` is a single text or cannot be iterated over.
        """
        given = items_of("texts", texts, object)
        documents = (text if isinstance(text, Document) else Document("text", text) for text in given)
        if self.encoder is None:
            total = len(texts) if isinstance(texts, Sequence) else None
            bar = progress_bar(
                documents, shown=show_progress, total=total, desc="segmenting", unit="document"
            )
            yield from map(self.segment, bar)
            return
        read = list(documents) if isinstance(texts, Sequence) else documents
        for document, table in tables_of(read, self.encoder, show_progress, self.splitter):
            yield self.segment(document, table if len(table) else None)
