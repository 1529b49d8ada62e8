"""Text splitters that cut by exact spans.

Every piece's text lies in its source at the place that its facts name, also for repeated text and for
pieces cut from pieces: `read_facts(piece)` gives `doc_id`, `start` and `end`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter
from pydantic import PrivateAttr

from langchain_precise.convert import document_names, piece_place
from langchain_precise.embeddings import PreciseEmbeddings
from langchain_precise.words import own_words
from precise_rag.checks import check_number
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.facts import copied, piece_id, place_facts, read_facts, write_facts
from precise_rag.index import weighted_chunks, weighted_sentences
from precise_rag.index.export import WHOLE
from precise_rag.index.sentence_context import ContextSettings
from precise_rag.metadata_keys import FACTS_KEY
from precise_rag.segmentation import GreedySegmenter, Segmenter, check_foreign_options
from precise_rag.titles import HEADER_PATH
from precise_rag.types import Chunk, FloatArray, Span
from precise_rag.types import Document as Source

_CONTEXT = ContextSettings()

_MAX_CHARACTERS = 4000
"""Default limit of a semantic piece, as of RecursiveCharacterTextSplitter()."""


class SpanTextSplitter(TextSplitter):
    """Base of the text splitters: cuts with a segmenter of the core.

    The pieces of a text join to the text, unless `strip_whitespace` is set. Blank text gives no
    pieces. A piece has a copy of its source's metadata and the facts about its place, under the one
    key "precise". If the source has an id, so does the piece: a UUID, the same one in every run.
    Pieces of a piece have their place in the text that it was cut from.

    add_start_index: also write its start to `metadata["start_index"]`, as LangChain's splitters do.
    """

    def __init__(
        self,
        segmenter: Segmenter | GreedySegmenter | None,
        *,
        add_start_index: bool = False,
        strip_whitespace: bool = False,
    ) -> None:
        super().__init__(chunk_overlap=0, add_start_index=add_start_index, strip_whitespace=strip_whitespace)
        self._segmenter = segmenter

    def split_text(self, text: str) -> list[str]:
        """Return the pieces of `text`, in order."""
        return [piece.page_content for piece in self.create_documents([text])]

    def create_documents(
        self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """Return the pieces of all `texts`, each with a copy of its text's metadata and its place."""
        metadatas = metadatas or [{}] * len(texts)
        return self.split_documents(
            Document(text, metadata=metadata) for text, metadata in zip(texts, metadatas, strict=True)
        )

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        """Return the pieces of all `documents`, in order."""
        documents = list(documents)
        chunked = self._chunks([document.page_content for document in documents])
        return [
            self._piece(document, name, chunk)
            for document, name, chunks in zip(documents, document_names(documents), chunked, strict=True)
            for chunk in chunks
            if chunk.text.strip() or not self._strip_whitespace
        ]

    def _chunks(self, texts: Sequence[str]) -> Iterable[Sequence[Chunk]]:
        """The chunks of each text."""
        assert self._segmenter is not None
        return self._segmenter.segment_many(texts)

    def _span(self, chunk: Chunk) -> Span:
        """Return the chunk's span, without outer white space if `strip_whitespace` is set."""
        if not self._strip_whitespace:
            return Span(chunk.start, chunk.end)
        start = chunk.end - len(chunk.text.lstrip())
        return Span(start, max(start, chunk.start + len(chunk.text.rstrip())))

    def _piece(self, source: Document, name: str, chunk: Chunk) -> Document:
        span = self._span(chunk)
        doc_id, origin = piece_place(source) or (name, Span(0, 0))
        place = Span(origin.start + span.start, origin.start + span.end)
        metadata = {**copied(source.metadata), FACTS_KEY: write_facts(place_facts(doc_id, place))}
        if HEADER_PATH in chunk.metadata:
            metadata.setdefault(HEADER_PATH, chunk.metadata[HEADER_PATH])
        if self._add_start_index:
            metadata["start_index"] = place.start
        return Document(
            id=None if source.id is None else piece_id(name, span.start, span.end),
            page_content=source.page_content[span.start : span.end],
            metadata=metadata,
        )


class SemanticSegmentationTextSplitter(SpanTextSplitter):
    """Text splitter that cuts where the meaning changes, by a small learned model (SAGE, section IV).

    model: "small" (CPU), "sage-minilm", a folder, or a `Segmenter`.
    chunk_size: longest piece, always kept to; in characters, or in units of `length_function`. Default:
    4,000 characters, as of LangChain's own splitters. `max_tokens` sets it in the model's tokens instead.
    length_function: measures a text for `chunk_size`; `from_huggingface_tokenizer` and
    `from_tiktoken_encoder` set it.
    embeddings: LangChain embeddings, a core encoder, or the name or path of one. The splitter's
    `embeddings` then give each piece its vector in context. It is the mean of its sentences' vectors,
    weighted with that of the text around it and with the vector of the whole piece. Give them to any vector
    store in place of your own. Default: none.
    whole: largest weight of the piece embedded as a whole in that vector (0 to 1); 0: it is not embedded.
    options: further options of `Segmenter.from_pretrained`, such as threshold, min_tokens, paragraphs.

    A piece below a heading has the titles above it in `metadata["header_path"]`, unless its document has
    that key.

    Raises InputError for options beside a `Segmenter`, which has its own, for a `chunk_overlap` other
    than 0, and with the reason for options that only LangChain's splitters have.
    """

    @own_words
    def __init__(
        self,
        model: str | Path | Segmenter = "small",
        *,
        chunk_size: int | None = None,
        chunk_overlap: int = 0,
        length_function: Callable[[str], int] | None = None,
        embeddings: Any = None,
        whole: float = WHOLE,
        add_start_index: bool = False,
        strip_whitespace: bool = False,
        **options: Any,
    ) -> None:
        check_foreign_options(options, chunk_overlap)
        if not isinstance(model, str | Path | Segmenter):
            raise InputError(
                f'model must be "small", "sage-minilm", a folder or a Segmenter, got {type(model).__name__}; '
                "pass embeddings as embeddings="
            )
        if chunk_size is not None and "max_tokens" in options:
            raise InputError("chunk_size and max_tokens are one limit in two units; pass one of them")
        has_limit = "max_tokens" in options or isinstance(model, Segmenter)
        if chunk_size is not None or length_function is not None or not has_limit:
            options.setdefault("max_tokens", _MAX_CHARACTERS if chunk_size is None else chunk_size)
            options["count_tokens"] = partial(_lengths, length_function or len)
        if isinstance(model, Segmenter) and options:
            raise InputError(
                "a Segmenter object has its own options; pass chunk_size, length_function and the like to "
                "Segmenter.from_pretrained, or pass the name of a model here"
            )
        segmenter = model if isinstance(model, Segmenter) else Segmenter.from_pretrained(model, **options)
        super().__init__(
            segmenter,
            add_start_index=add_start_index,
            strip_whitespace=strip_whitespace,
        )
        self.embeddings = (
            None
            if embeddings is None
            else ContextEmbeddings(model=load_encoder(embeddings, argument="embeddings"))
        )
        check_number("whole", whole, least=0, most=1)
        self._whole = whole

    def _chunks(self, texts: Sequence[str]) -> Iterable[Sequence[Chunk]]:
        if self.embeddings is None:
            return super()._chunks(texts)
        assert self._segmenter is not None
        chunks: list[list[Chunk]] = [[] for _ in texts]
        sources = (Source(str(number), text) for number, text in enumerate(texts))
        pieces = weighted_chunks(sources, self.embeddings.encoder, self._segmenter, whole=self._whole)
        for piece in pieces:
            number, start, end = (read_facts(piece.metadata)[name] for name in ("doc_id", "start", "end"))
            chunk = Chunk(number, start, end, piece.text, metadata=piece.metadata)
            span = self._span(chunk)
            self.embeddings.vectors[texts[int(number)][span.start : span.end]] = piece.vector
            chunks[int(number)].append(chunk)
        return chunks


class ContextEmbeddings(PreciseEmbeddings):
    """Embeddings that know the pieces of a splitter by their vectors in context.

    Other texts, and queries, are embedded by the encoder. Pieces with equal texts share one vector.

    model: a name or path, an encoder object, or anything else that `load_encoder` takes.
    """

    _vectors: dict[str, FloatArray] = PrivateAttr(default_factory=dict)

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return False: it knows pieces, which its settings do not hold."""
        return False

    @property
    def vectors(self) -> dict[str, FloatArray]:
        """The vectors in context, by the text of the piece."""
        return self._vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vector in context of each text that is a piece, and the encoder's of any other."""
        others = [text for text in texts if text not in self.vectors]
        new = dict(zip(others, super().embed_documents(others), strict=True)) if others else {}
        return [new[text] if text in new else self.vectors[text].tolist() for text in texts]


class GreedySemanticTextSplitter(SpanTextSplitter):
    """Text splitter that joins neighbouring sentences while they are alike (ChunkRAG, section 3).

    embeddings: LangChain embeddings, a core encoder, or the name or path of one; default: the offline
    encoder.
    chunk_size: longest piece, in characters, or in units of `length_function`; default: the paper's.
    length_function: measures a text for `chunk_size`.
    options: further options of `GreedySegmenter`, such as threshold.

    Raises InputError for a `chunk_overlap` other than 0, and with the reason for options that only
    LangChain's splitters have.
    """

    @own_words
    def __init__(
        self,
        embeddings: Any = DEFAULT_ENCODER,
        *,
        chunk_size: int | None = None,
        chunk_overlap: int = 0,
        length_function: Callable[[str], int] | None = None,
        add_start_index: bool = False,
        strip_whitespace: bool = False,
        **options: Any,
    ) -> None:
        check_foreign_options(options, chunk_overlap)
        if chunk_size is not None:
            options["max_chars"] = chunk_size
        if length_function is not None:
            options["length_function"] = partial(_lengths, length_function)
        super().__init__(
            GreedySegmenter(load_encoder(embeddings, argument="embeddings"), **options),
            add_start_index=add_start_index,
            strip_whitespace=strip_whitespace,
        )


class SentenceContextTextSplitter(SpanTextSplitter):
    """Text splitter that makes a document of each sentence, its context in its vector (ParetoRAG).

    The splitter's `embeddings` give each sentence a vector that knows the passage around it. Give them to any
    vector store in place of your own: `FAISS.from_documents(splitter.split_documents(…),
    splitter.embeddings)`. The passage is in the metadata. White space between sentences belongs to none.

    embeddings: LangChain embeddings, a core encoder, or the name or path of one; default: the offline
        encoder.
    alpha: weight of the sentence against its context (0 to 1).
    context: "mean", from the vectors of the sentences, or "encode", which encodes each context, as in the
        paper.
    passages: "paragraphs", "segments", or a number of sentences.
    window_metadata_key: metadata key of the passage.
    """

    @own_words
    def __init__(
        self,
        embeddings: Any = DEFAULT_ENCODER,
        *,
        alpha: float = _CONTEXT.alpha,
        context: Literal["mean", "encode"] = _CONTEXT.context,
        passages: str | int = "paragraphs",
        window_metadata_key: str = "window",
        add_start_index: bool = False,
    ) -> None:
        super().__init__(None, add_start_index=add_start_index, strip_whitespace=True)
        self._settings: dict[str, Any] = {"alpha": alpha, "context": context, "passages": passages}
        ContextSettings(**self._settings)  # checks them
        self.embeddings = ContextEmbeddings(model=load_encoder(embeddings, argument="embeddings"))
        self._window = window_metadata_key

    def _chunks(self, texts: Sequence[str]) -> Iterable[Sequence[Chunk]]:
        chunks: list[list[Chunk]] = [[] for _ in texts]
        sources = (Source(str(number), text) for number, text in enumerate(texts))
        for piece in weighted_sentences(sources, self.embeddings.encoder, **self._settings):
            facts = read_facts(piece.metadata)
            number, (start, end) = int(facts["doc_id"]), facts["passage"]
            window = {self._window: texts[number][start:end]}
            chunk = Chunk(facts["doc_id"], facts["start"], facts["end"], piece.text, metadata=window)
            self.embeddings.vectors[chunk.text.strip()] = piece.vector
            chunks[number].append(chunk)
        return chunks

    def _piece(self, source: Document, name: str, chunk: Chunk) -> Document:
        if self._window in source.metadata:
            raise InputError(
                f"document {source.id} has metadata under {self._window!r} already; "
                "set window_metadata_key= to another key"
            )
        piece = super()._piece(source, name, chunk)
        piece.metadata.update(chunk.metadata)
        return piece


def _lengths(length_function: Callable[[str], int], texts: Sequence[str]) -> list[int]:
    return [length_function(text) for text in texts]
