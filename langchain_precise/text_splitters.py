"""Text splitters that cut by exact spans.

Every piece's text is `source.page_content[start_index:end_index]`, also for repeated text and for
pieces cut from pieces.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter

from langchain_precise.convert import DOC_ID, END, START, piece_span
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.facts import FACTS_KEY, copied
from precise_rag.segmentation import GreedySegmenter, Segmenter
from precise_rag.types import Chunk, Span


class SpanTextSplitter(TextSplitter):
    """Base of the text splitters: cuts with a segmenter of the core.

    The pieces of a text join to the text, unless `strip_whitespace` is set. Blank text gives no
    pieces. A piece has a copy of its source's metadata and the source's id as `metadata["doc_id"]`;
    if the source has an id, so does the piece, and the same one in every run. Pieces of a piece (a
    document with `start_index` and `end_index`) have offsets in the text that it was cut from.
    """

    def __init__(
        self,
        segmenter: Segmenter | GreedySegmenter,
        *,
        chunk_overlap: int = 0,
        add_start_index: bool = True,
        strip_whitespace: bool = False,
    ) -> None:
        if chunk_overlap != 0:
            raise InputError(
                f"chunk_overlap must be 0, got {chunk_overlap}: these pieces do not overlap; to search "
                "sentences together with their surroundings, use SentenceContextRetriever"
            )
        super().__init__(chunk_overlap=0, add_start_index=add_start_index, strip_whitespace=strip_whitespace)
        self._segmenter = segmenter

    def split_text(self, text: str) -> list[str]:
        """Return the pieces of `text`, in order."""
        return [piece.page_content for piece in self.create_documents([text])]

    def create_documents(
        self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """Return the pieces of all `texts`, each with a copy of its text's metadata and its offsets."""
        metadatas = metadatas or [{}] * len(texts)
        return self.split_documents(
            Document(text, metadata=metadata) for text, metadata in zip(texts, metadatas, strict=True)
        )

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        """Return the pieces of all `documents`, in order."""
        documents = list(documents)
        chunked = self._segmenter.segment_many(document.page_content for document in documents)
        return [
            self._piece(document, self._span(chunk))
            for document, chunks in zip(documents, chunked, strict=True)
            for chunk in chunks
            if chunk.text.strip() or not self._strip_whitespace
        ]

    def _span(self, chunk: Chunk) -> Span:
        """Return the chunk's span, without outer white space if `strip_whitespace` is set."""
        if not self._strip_whitespace:
            return Span(chunk.start, chunk.end)
        start = chunk.end - len(chunk.text.lstrip())
        return Span(start, max(start, chunk.start + len(chunk.text.rstrip())))

    def _piece(self, source: Document, span: Span) -> Document:
        metadata = copied(source.metadata)
        metadata.pop(FACTS_KEY, None)
        whole = piece_span(source)
        origin = whole.start if whole else 0
        start, end = origin + span.start, origin + span.end
        doc_id = metadata.get(DOC_ID) if whole else source.id
        if doc_id is not None:
            metadata[DOC_ID] = doc_id
        if self._add_start_index:
            metadata[START], metadata[END] = start, end
        return Document(
            id=None if doc_id is None else f"{doc_id}:{start}-{end}",
            page_content=source.page_content[span.start : span.end],
            metadata=metadata,
        )


class SemanticSegmentationTextSplitter(SpanTextSplitter):
    """Text splitter that cuts where the meaning changes, by a small learned model (SAGE, section IV).

    model: "small" (CPU), "sage-minilm", a folder, or a `Segmenter`.
    chunk_size: longest piece, always kept to; in the model's tokens, or in units of `length_function`.
    Default: the model's own limit.
    length_function: measures a text for `chunk_size`; `from_huggingface_tokenizer` and
    `from_tiktoken_encoder` set it.
    options: further options of `Segmenter.from_pretrained`, such as threshold, min_tokens, paragraphs.

    Raises InputError for options beside a `Segmenter`, which has its own, and for a `chunk_overlap`
    other than 0.
    """

    def __init__(
        self,
        model: str | Path | Segmenter = "small",
        *,
        chunk_size: int | None = None,
        chunk_overlap: int = 0,
        length_function: Callable[[str], int] | None = None,
        add_start_index: bool = True,
        strip_whitespace: bool = False,
        **options: Any,
    ) -> None:
        if chunk_size is not None:
            options["max_tokens"] = chunk_size
        if length_function is not None:
            options["count_tokens"] = partial(_lengths, length_function)
        if isinstance(model, Segmenter) and options:
            raise InputError(
                "a Segmenter object has its own options; pass chunk_size, length_function and the like to "
                "Segmenter.from_pretrained, or pass the name of a model here"
            )
        segmenter = model if isinstance(model, Segmenter) else Segmenter.from_pretrained(model, **options)
        super().__init__(
            segmenter,
            chunk_overlap=chunk_overlap,
            add_start_index=add_start_index,
            strip_whitespace=strip_whitespace,
        )


class GreedySemanticTextSplitter(SpanTextSplitter):
    """Text splitter that joins neighbouring sentences while they are alike (ChunkRAG, section 3).

    encoder: LangChain embeddings, a core encoder, or the name or path of one; default: the offline
    encoder.
    chunk_size: longest piece, in characters, or in units of `length_function`; default: the paper's.
    length_function: measures a text for `chunk_size`.
    options: further options of `GreedySegmenter`, such as threshold.

    Raises InputError for a `chunk_overlap` other than 0.
    """

    def __init__(
        self,
        encoder: Any = DEFAULT_ENCODER,
        *,
        chunk_size: int | None = None,
        chunk_overlap: int = 0,
        length_function: Callable[[str], int] | None = None,
        add_start_index: bool = True,
        strip_whitespace: bool = False,
        **options: Any,
    ) -> None:
        if chunk_size is not None:
            options["max_chars"] = chunk_size
        if length_function is not None:
            options["length_function"] = partial(_lengths, length_function)
        super().__init__(
            GreedySegmenter(load_encoder(encoder), **options),
            chunk_overlap=chunk_overlap,
            add_start_index=add_start_index,
            strip_whitespace=strip_whitespace,
        )


def _lengths(length_function: Callable[[str], int], texts: Sequence[str]) -> list[int]:
    return [length_function(text) for text in texts]
