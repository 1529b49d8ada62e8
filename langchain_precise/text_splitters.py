"""Text splitters that cut where the meaning changes, with offsets that hold."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter

from langchain_precise.convert import DOC_ID, END, FACTS, START, piece_span
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.segmentation import GreedySegmenter, Segmenter
from precise_rag.types import Chunk, Span


class _Segmenter(Protocol):
    def segment_many(self, texts: Iterable[str]) -> Iterator[list[Chunk]]: ...


class SegmentTextSplitter(TextSplitter):
    """A text splitter over any segmenter of the core.

    Pieces are verbatim, `source.page_content[start_index:end_index]`, and tile the source unless
    `strip_whitespace` is asked for. Metadata is copied, a source's id is kept as
    `metadata["doc_id"]`, and the pieces of a source with an id have ids that stay the same from
    run to run. A source that is itself a piece (it has `start_index` and `end_index`) gives
    pieces with offsets in the text that it came from. Blank text gives no pieces.
    """

    def __init__(
        self,
        segmenter: _Segmenter,
        *,
        chunk_overlap: int = 0,
        add_start_index: bool = True,
        strip_whitespace: bool = False,
    ) -> None:
        if chunk_overlap != 0:
            raise InputError(
                f"chunk_overlap is {chunk_overlap}, but pieces that end where the meaning changes do not "
                "overlap; leave it at 0 (SentenceContextRetriever searches with the surroundings instead)"
            )
        super().__init__(chunk_overlap=0, add_start_index=add_start_index, strip_whitespace=strip_whitespace)
        self._segmenter = segmenter

    def split_text(self, text: str) -> list[str]:
        """The pieces of `text`, in order."""
        return [piece.page_content for piece in self.create_documents([text])]

    def create_documents(
        self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """The pieces of all `texts`, each with a copy of its text's metadata and its offsets."""
        metadatas = metadatas or [{}] * len(texts)
        return self.split_documents(
            Document(text, metadata=metadata) for text, metadata in zip(texts, metadatas, strict=True)
        )

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        """The pieces of all `documents`, in order."""
        documents = list(documents)
        chunked = self._segmenter.segment_many(document.page_content for document in documents)
        return [
            self._piece(document, self._span(chunk))
            for document, chunks in zip(documents, chunked, strict=True)
            for chunk in chunks
            if chunk.text.strip() or not self._strip_whitespace
        ]

    def _span(self, chunk: Chunk) -> Span:
        """The chunk's place, without its outer white space if so asked."""
        if not self._strip_whitespace:
            return Span(chunk.start, chunk.end)
        start = chunk.end - len(chunk.text.lstrip())
        return Span(start, max(start, chunk.start + len(chunk.text.rstrip())))

    def _piece(self, source: Document, span: Span) -> Document:
        metadata = copy.deepcopy(source.metadata)
        metadata.pop(FACTS, None)
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


class SemanticSegmentationTextSplitter(SegmentTextSplitter):
    """Cuts where a small learned model sees the topic change (SAGE, section IV).

    model: a name, a folder, or a `Segmenter` that is ready. chunk_size: the longest piece allowed,
    a limit that always holds; in tokens of the model, or in the units of `length_function` where
    one is given (`from_huggingface_tokenizer` and `from_tiktoken_encoder` give one). By default
    the model's own limit. options: further ones of `Segmenter.from_pretrained` (threshold,
    min_tokens, paragraphs …).

    Raises InputError for options that a ready `Segmenter` has already, and for any `chunk_overlap`
    but 0: pieces that tile the text do not overlap.
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
                "the Segmenter that was given has its options already; give chunk_size, length_function "
                "and the like to Segmenter.from_pretrained, or give the name of a model here"
            )
        segmenter = model if isinstance(model, Segmenter) else Segmenter.from_pretrained(model, **options)
        super().__init__(
            segmenter,
            chunk_overlap=chunk_overlap,
            add_start_index=add_start_index,
            strip_whitespace=strip_whitespace,
        )


class GreedySemanticTextSplitter(SegmentTextSplitter):
    """Joins each sentence to the piece before it while the two are alike (ChunkRAG).

    encoder: a name or path, an encoder of the core's, or LangChain embeddings. chunk_size: the
    longest piece, by default the paper's; in characters, or in the units of `length_function`.
    options: further ones of `GreedySegmenter`.
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
