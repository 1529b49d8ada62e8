"""Text splitters that cut by exact spans.

Every piece's text lies in its source at the place that its facts name, also for repeated text and for
pieces cut from pieces: `read_facts(piece)` gives `doc_id`, `start` and `end`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter
from pydantic import PrivateAttr

from langchain_precise.convert import lasting, piece_place, split_names
from langchain_precise.embeddings import PreciseEmbeddings
from precise_rag.checks import check_number, items_of
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.facts import FACTS_KEY, SECTION_KEY, copied, piece_id, place_facts, read_facts, write_facts
from precise_rag.index import weighted_chunks, weighted_sentences
from precise_rag.index.export import WHOLE, WeightedPiece
from precise_rag.index.sentence_context import ContextSettings
from precise_rag.segmentation import GreedySegmenter, Segmenter
from precise_rag.titles import joined_titles, titles_of
from precise_rag.types import Chunk, FloatArray, Span
from precise_rag.types import Document as Source

_CONTEXT = ContextSettings()
_MAX_CHARACTERS = 1200
"""Default limit of a semantic piece."""
_KNOWN = 100_000  # pieces whose vectors are kept


class SpanTextSplitter(TextSplitter):
    """Base of the text splitters: cuts by the spans of chunks.

    The pieces of a text join to the text, unless `strip_whitespace` is set. Blank text gives no pieces. A
    piece has a copy of its source's metadata, the titles above it as "section", and the facts about its place
    under the key "precise". If the source has an id, so does the piece: a UUID, the same one in every run.
    Pieces of a piece have their place in the text that it was cut from.

    embeddings: `ContextEmbeddings`, which give each piece its vector in context; None if it makes no vectors.
    add_start_index: also write its start to `metadata["start_index"]`, as LangChain's splitters do.
    show_progress: show a progress bar; default: False.
    """

    embeddings: Any = None

    def __init__(self, *, show_progress: bool = False, **options: Any) -> None:
        super().__init__(chunk_overlap=0, **{"strip_whitespace": False, **options})
        self._show_progress = show_progress

    @abstractmethod
    def _chunks(self, sources: Sequence[Source]) -> Iterable[Chunk | WeightedPiece]:
        """Yield the chunks of the sources, with their vectors if there are any; blank sources have none."""

    def split_text(self, text: str) -> list[str]:
        """Return the pieces of `text`, in order."""
        return [piece.page_content for piece in self.create_documents([text])]

    def create_documents(
        self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """Return the pieces of all `texts`, each with a copy of its text's metadata and its place."""
        texts = list(items_of("texts", texts, str))
        metadatas = list(items_of("metadatas", metadatas or [{}] * len(texts), dict))
        if len(metadatas) != len(texts):
            raise InputError(f"metadatas must be one for each text, got {len(metadatas)} for {len(texts)}")
        pairs = zip(texts, metadatas, strict=True)
        return self.split_documents(Document(text, metadata=metadata) for text, metadata in pairs)

    def split_documents(self, documents: Iterable[Document]) -> list[Document]:
        """Return the pieces of all `documents`, in order."""
        documents = list(items_of("documents", documents, Document))
        names, pieces, vectors = split_names(documents), [], []
        sources = [Source(str(i), one.page_content, lasting(one.metadata)) for i, one in enumerate(documents)]
        for cut in self._chunks(sources):
            chunk = cut.chunk if isinstance(cut, WeightedPiece) else cut
            if chunk.text.strip() or not self._strip_whitespace:
                row = int(chunk.doc_id)
                pieces.append(self._piece(documents[row], names[row], chunk))
                if isinstance(cut, WeightedPiece):
                    vectors.append((pieces[-1].page_content, cut.vector))
        if vectors:
            self.embeddings._learn(vectors)
        return pieces

    def _piece(self, source: Document, name: str, chunk: Chunk) -> Document:
        span = Span(chunk.start, chunk.end)
        if self._strip_whitespace:
            span = Span(chunk.end - len(chunk.text.lstrip()), chunk.start + len(chunk.text.rstrip()))
        doc_id, origin = piece_place(source) or (name, Span(0, 0))
        place = Span(origin.start + span.start, origin.start + span.end)
        metadata = copied(chunk.metadata) | {FACTS_KEY: write_facts(place_facts(doc_id, place))}
        metadata.setdefault(SECTION_KEY, joined_titles(titles_of(metadata)))
        if self._add_start_index:
            metadata["start_index"] = place.start
        return Document(
            id=None if source.id is None else piece_id(name, span.start, span.end),
            page_content=source.page_content[span.start : span.end],
            metadata=metadata,
        )


class SemanticSegmentationTextSplitter(SpanTextSplitter):
    """Text splitter that cuts where the meaning changes, by a small learned model (SAGE, section IV).

    model: "small" (CPU), "sage", "sage-minilm", "greedy", a folder, or a segmenter of the core.
    chunk_size: longest piece, always kept to; in characters, or in units of `length_function`. Default:
    1,200 characters. `max_tokens` sets it in tokens instead, of the packaged encoder or by `count_tokens`.
    length_function: measures a text for `chunk_size`; `from_huggingface_tokenizer` and
    `from_tiktoken_encoder` set it.
    embeddings: LangChain embeddings, a core encoder, or the name or path of one. The splitter's `embeddings`
    then give your vector store each piece's vector in context: the mean of its sentences' vectors, weighted
    with that of the text around it and with the vector of the whole piece. Default: none.
    whole: largest weight of the piece embedded as a whole in that vector, if there is one (0 to 1).
    options: further options of `Segmenter.from_pretrained`, such as threshold, min_tokens, paragraphs.

    `model="greedy"` joins neighbouring sentences while their vectors by `embeddings` are alike (ChunkRAG).
    Its one further option is `threshold`, a cosine; its default limit is the paper's, 500 characters.

    A piece below a heading has the titles above it in `metadata["header_path"]`, after those of its source.

    Raises InputError for options beside a segmenter, and for a `chunk_overlap` other than 0.
    """

    def __init__(
        self,
        model: str | Path | Segmenter | GreedySegmenter = "small",
        *,
        chunk_size: int | None = None,
        chunk_overlap: int = 0,
        length_function: Callable[[str], int] | None = None,
        embeddings: Any = None,
        whole: float = WHOLE,
        add_start_index: bool = False,
        strip_whitespace: bool = False,
        show_progress: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(
            add_start_index=add_start_index, strip_whitespace=strip_whitespace, show_progress=show_progress
        )
        if chunk_overlap:
            raise InputError(f"chunk_overlap must be 0, got {chunk_overlap}: these pieces do not overlap")
        check_number("whole", whole, least=0, most=1)
        self._whole = whole
        if embeddings is not None:
            self.embeddings = ContextEmbeddings(model=load_encoder(embeddings, argument="embeddings"))
        if isinstance(model, Segmenter | GreedySegmenter):
            if options or chunk_size is not None or length_function is not None:
                raise InputError("a segmenter has its own chunk_size and options; set them where it is made")
            self._segmenter = model
        elif model == "greedy":
            if self.embeddings is None:
                raise InputError('model="greedy" needs embeddings, to say which sentences are alike')
            limits = {"max_chars": chunk_size, "length_function": length_function}
            options |= {name: limit for name, limit in limits.items() if limit is not None}
            self._segmenter = GreedySegmenter(self.embeddings.encoder, **options)
        elif isinstance(model, str | Path):
            in_tokens = options.keys() & {"max_tokens", "count_tokens"}
            if in_tokens and (chunk_size, length_function) != (None, None):
                raise InputError("max_tokens and count_tokens exclude chunk_size and length_function")
            if not in_tokens:
                options["max_tokens"] = _MAX_CHARACTERS if chunk_size is None else chunk_size
                options["count_tokens"] = length_function or len
            self._segmenter = Segmenter.from_pretrained(model, **options)
        else:
            raise InputError(f"model must be a name, a folder or a segmenter, got {type(model).__name__}")

    def _chunks(self, sources: Sequence[Source]) -> Iterable[Chunk | WeightedPiece]:
        shown = self._show_progress
        if self.embeddings is None:
            return chain.from_iterable(self._segmenter.segment_many(sources, show_progress=shown))
        options: dict[str, Any] = {"whole": self._whole, "show_progress": shown}
        return weighted_chunks(sources, self.embeddings.encoder, self._segmenter, **options)


class SentenceContextTextSplitter(SpanTextSplitter):
    """Text splitter that makes a document of each sentence, its context in its vector (ParetoRAG).

    The splitter's `embeddings` give your vector store each sentence's vector, which knows the passage around
    it. The window of a sentence, its passage and at least three sentences on each side, is in the metadata.
    White space between sentences belongs to none.

    embeddings: LangChain's, a core encoder, or the name or path of one; default: the offline encoder.
    alpha: weight of the sentence against its context (0 to 1).
    context: "mean", from the vectors of the sentences, or "encode", which encodes each context, as in the
        paper.
    passages: "paragraphs", "segments", or a number of sentences.
    window_metadata_key: metadata key of the window.
    """

    def __init__(
        self,
        embeddings: Any = DEFAULT_ENCODER,
        *,
        alpha: float = _CONTEXT.alpha,
        context: Literal["mean", "encode"] = _CONTEXT.context,
        passages: str | int = "paragraphs",
        window_metadata_key: str = "window",
        add_start_index: bool = False,
        show_progress: bool = False,
    ) -> None:
        super().__init__(add_start_index=add_start_index, strip_whitespace=True, show_progress=show_progress)
        self._settings: dict[str, Any] = {"alpha": alpha, "context": context, "passages": passages}
        ContextSettings(**self._settings)  # checks them
        self.embeddings = ContextEmbeddings(model=load_encoder(embeddings, argument="embeddings"))
        self._window = window_metadata_key

    def _chunks(self, sources: Sequence[Source]) -> Iterable[WeightedPiece]:
        options = {"show_progress": self._show_progress, **self._settings}
        return weighted_sentences(sources, self.embeddings.encoder, **options)

    def _piece(self, source: Document, name: str, chunk: Chunk) -> Document:
        if self._window in source.metadata:
            taken = f"document {source.id} has metadata under {self._window!r} already"
            raise InputError(f"{taken}; set window_metadata_key= to another key")
        piece = super()._piece(source, name, chunk)
        start, end = read_facts(chunk.metadata)["window"]
        piece.metadata[self._window] = source.page_content[start:end]
        return piece


class ContextEmbeddings(PreciseEmbeddings):
    """Embeddings that know the pieces of a splitter by their vectors in context.

    Equal texts are told apart: copies of a piece share the very text object. Another text that reads like
    pieces has their vector if it is the same for all; queries and all others are embedded by the encoder.
    The last 100,000 pieces are known, or all of the last split if it has more.
    """

    _known: dict[int, tuple[str, FloatArray]] = PrivateAttr(default_factory=dict)
    """By the `id` of their texts, which are held so that it stays theirs, the vectors of pieces."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return False: it knows pieces, which its settings do not hold."""
        return False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vector in context of each text that is a piece, and the encoder's of any other."""
        texts = list(items_of("texts", texts, str))
        own = {id(piece[0]): piece[1] for piece in map(self._known.get, map(id, texts)) if piece}
        alike: dict[str, list[FloatArray]] = {text: [] for text in texts if id(text) not in own}
        for text, vector in [*self._known.values()] if alike else ():
            if text in alike:
                alike[text].append(vector)
        rest = {text: rows[0] for text, rows in alike.items() if rows and np.ptp(rows, axis=0).max() < 1e-3}
        others = [text for text in alike if text not in rest]
        rest |= dict(zip(others, np.array(super().embed_documents(others)), strict=True))
        return [(own[id(text)] if id(text) in own else rest[text]).tolist() for text in texts]

    def _learn(self, pieces: Sequence[tuple[str, FloatArray]]) -> None:
        for text, vector in pieces:
            self._known.pop(id(text), None)
            self._known[id(text)] = text, vector
        for key in [*self._known][: -max(len(pieces), _KNOWN)]:
            self._known.pop(key, None)
