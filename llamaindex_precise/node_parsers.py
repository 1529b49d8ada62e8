"""Node parsers that cut by exact spans.

Every node's text is `document.text[start_char_idx:end_char_idx]`, also for repeated text and for
nodes cut from nodes.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from itertools import groupby
from typing import Annotated, Any, Literal, TypeAlias

from llama_index.core.bridge.pydantic import Field, PrivateAttr, WithJsonSchema, field_serializer
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import build_nodes_from_splits, default_id_func
from llama_index.core.schema import BaseNode, ImageDocument, NodeRelationship, TextNode
from llama_index.core.utils import get_tokenizer

from llamaindex_precise.convert import as_text_node, hide, own_text, root_offset, root_source, shown_metadata
from llamaindex_precise.embeddings import EncoderComponent
from llamaindex_precise.events import dispatcher
from precise_rag import __version__
from precise_rag.checks import check_number
from precise_rag.errors import InputError
from precise_rag.facts import FACTS_KEY, copied, piece_id, read_facts
from precise_rag.index import weighted_chunks, weighted_sentences
from precise_rag.index.export import WHOLE
from precise_rag.index.sentence_context import ContextSettings
from precise_rag.protocols import Encoder
from precise_rag.segmentation import GreedySegmenter, Segmenter, SegmenterOptions
from precise_rag.sentences import load_sentence_splitter
from precise_rag.structure import TextFormat
from precise_rag.titles import PATH_KEYS, titles_of, with_header_path
from precise_rag.types import Chunk, Document, FloatArray

_CONTEXT = ContextSettings()
_MAX_TOKENS = 512
"""Default limit of a semantic node: two or ten of them answered more questions than longer ones, or those of
SentenceSplitter(), with fewer tokens."""
Piece: TypeAlias = tuple[Chunk, FloatArray | None]
"""A part of a document, and the vector of the node that is made of it; None: the node gets no vector."""


class SpanNodeParser(EncoderComponent, NodeParser):
    """Base of the node parsers: cuts documents, text nodes, or the nodes of another parser.

    Blank documents give no nodes. Nodes cut from a node have offsets in its root document. The
    fields for versions, weights and sentence splitter are filled in by the parser, whatever is
    passed; they let ingestion caches notice a change.
    """

    core_version: str = ""
    sentence_splitter_name: str = ""

    def model_post_init(self, context: Any) -> None:
        """Fill in the version."""
        super().model_post_init(context)
        self.core_version = __version__

    def _pieces(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Piece]:
        """Yield the pieces of documents that are not blank, document by document."""
        raise NotImplementedError

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        parents = {str(i): node for i, node in enumerate(nodes) if own_text(node).strip()}
        documents = [Document(i, own_text(parent), parent.metadata) for i, parent in parents.items()]
        by_parent = groupby(self._pieces(documents, show_progress), key=lambda piece: piece[0].doc_id)
        return [node for i, pieces in by_parent for node in self._cut(parents[i], list(pieces))]

    @dispatcher.span
    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        return await asyncio.to_thread(self._parse_nodes, nodes, show_progress, **kwargs)

    def _cut(self, parent: BaseNode, pieces: Sequence[Piece]) -> list[TextNode]:
        """Return new nodes for `pieces` of the parent's text, with offsets in its root document.

        Their ids are UUIDs, the same in every run, unless the parser has an `id_func` of its own.
        """
        try:
            source, offset = root_source(parent), root_offset(parent)
            texts = [chunk.text for chunk, _ in pieces]
            whole = parent if isinstance(parent, ImageDocument) else as_text_node(parent)
            children = build_nodes_from_splits(texts, whole, id_func=self.id_func)
        except ValueError as error:  # the hash of a node prints its metadata
            why = f"LlamaIndex cannot hash its metadata ({error}); write long numbers as texts"
            raise InputError(f"node {parent.node_id!r}: {why}") from error
        shown = {*titles_of(shown_metadata(parent))} - {*titles_of(parent.metadata, PATH_KEYS)}
        for child, (chunk, vector) in zip(children, pieces, strict=True):
            child.embedding = None if vector is None else vector.tolist()
            if self.id_func in (None, default_id_func):
                child.id_ = piece_id(parent.node_id, chunk.start, chunk.end)
            child.relationships |= copied({NodeRelationship.SOURCE: source})
            if self.include_metadata:
                path = [title for title in titles_of(chunk.metadata, PATH_KEYS) if title not in shown]
                child.metadata = with_header_path(copied(chunk.metadata), path)
                child.metadata.pop(FACTS_KEY, None)
            hide(child)
            if offset is not None:
                child.start_char_idx, child.end_char_idx = offset + chunk.start, offset + chunk.end
        return children

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Any]
    ) -> list[BaseNode]:
        """Let the base class add source metadata and links between neighbours.

        It does not get the parents: it would search them for each node's text and overwrite exact
        offsets with those of the first match.
        """
        return super()._postprocess_parsed_nodes(nodes, {})


class SemanticSegmentationNodeParser(SpanNodeParser):
    """Node parser that cuts where the meaning changes, by a small learned model (SAGE, section IV).

    The nodes of a document join to its text. Headings, lists, tables, code and turns are kept together
    where the limit allows. A node below a heading has the titles above it in `metadata["header_path"]`,
    as nodes of MarkdownNodeParser have, without those that its document's metadata shows to LLMs.

    With an `embed_model` each node has its vector: the mean of its sentences' vectors, weighted with
    that of the surrounding text and with the vector of the whole node. Search such nodes with the same
    encoder, and put no embedding model after the parser in an IngestionPipeline: it would overwrite the
    vectors. Without an `embed_model` nodes have no vectors, even if `Settings` has one.

    `model="greedy"` joins neighbouring sentences while their vectors by `embed_model` are alike (ChunkRAG,
    section 3). Its options are `threshold`, a cosine, and `max_tokens`; default: the paper's 500 characters.

    model: "small" (CPU), "sage", "sage-minilm", "greedy", or a folder.
    device: "cpu", "cuda", …; default: a GPU if there is one.
    tokenizer: function from a text to its tokens, which `max_tokens` counts; default: `Settings.tokenizer`.
    alpha: weight of a node's sentences against the text around it, in its vector.
    whole: largest weight of the node embedded as a whole, in its vector. Both: with an `embed_model` only.
    weights_sha256: checksum of the model in use; filled in.
    The other fields are those of `SegmenterOptions`, with max_tokens 512 by default; they show what holds.
    chunk_size: the same as `max_tokens`, under the name that other node parsers have for it.
    chunk_overlap: none but 0: these nodes do not overlap.
    """

    model: str = "small"
    device: str | None = None
    threshold: float | None = None
    max_tokens: int | None = None
    chunk_size: int | None = Field(default=None, exclude=True)
    chunk_overlap: Literal[0] = Field(default=0, exclude=True)
    target_tokens: int | None = None
    min_tokens: int | None = None
    paragraphs: Literal["hard", "soft"] | None = None
    coarse_tokens: int | None = None
    text_format: TextFormat | None = None
    tokenizer: Annotated[Callable[[str], Sequence[Any]] | None, WithJsonSchema({})] = None
    alpha: float = _CONTEXT.alpha
    whole: float = WHOLE
    weights_sha256: str = ""

    _segmenter: Segmenter | GreedySegmenter = PrivateAttr()
    _encoder: Encoder | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        """Load the model now, not at the first document."""
        super().model_post_init(context)
        ContextSettings(alpha=self.alpha)  # checks it
        check_number("whole", self.whole, least=0, most=1)
        if self.chunk_size is not None:
            if self.max_tokens not in (None, self.chunk_size):
                raise InputError("chunk_size and max_tokens are one limit under two names; pass one of them")
            self.max_tokens = self.chunk_size
        self._encoder = self._given_encoder()
        self._segmenter = self._make_segmenter()
        self.weights_sha256 = self._segmenter.weights_sha256
        self.sentence_splitter_name = self._segmenter.splitter.name
        self.chunk_size = self.max_tokens

    @field_serializer("tokenizer")
    def _saved_tokenizer(self, tokenizer: Any) -> str | None:
        return None if tokenizer is None else getattr(tokenizer, "__qualname__", type(tokenizer).__name__)

    def _make_segmenter(self) -> Segmenter | GreedySegmenter:
        names = ("device", *(field.name for field in fields(SegmenterOptions)))
        options = {name: value for name in names if (value := getattr(self, name)) is not None}
        tokenizer = self.tokenizer or get_tokenizer()

        def count_tokens(text: str) -> int:
            return len(tokenizer(text))

        if self.model == "greedy":
            if self._encoder is None:
                raise InputError(
                    'model="greedy" needs an embed_model, whose vectors say which sentences are alike'
                )
            if "max_tokens" in options:
                options |= {"max_chars": options.pop("max_tokens"), "length_function": count_tokens}
            return GreedySegmenter(self._encoder, **options)
        options = {"max_tokens": _MAX_TOKENS, **options}
        segmenter = Segmenter.from_pretrained(self.model, count_tokens=count_tokens, **options)
        for name, value in asdict(segmenter.options).items():
            setattr(self, name, value)
        return segmenter

    def _pieces(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Piece]:
        if self._encoder is None:
            for chunks in self._segmenter.segment_many(documents, show_progress=show_progress):
                yield from ((chunk, None) for chunk in chunks)
            return
        options: dict[str, Any] = {"alpha": self.alpha, "whole": self.whole, "show_progress": show_progress}
        for piece in weighted_chunks(documents, self._encoder, self._segmenter, **options):
            yield piece.chunk, piece.vector


class SentenceContextNodeParser(SpanNodeParser):
    """Node parser that makes a node of each sentence, its context in its vector (ParetoRAG).

    Search the nodes with the same encoder, and put no embedding model after the parser in an
    IngestionPipeline: it would overwrite the vectors. The window of a sentence, its passage and at least
    three sentences on each side, is in its metadata, hidden from models, for MetadataReplacementPostProcessor
    (as with SentenceWindowNodeParser). White space between sentences belongs to no node.

    alpha: weight of the sentence against its context.
    context: "mean", from the vectors of the sentences, or "encode", which encodes each context, as in the
        paper.
    passages: "paragraphs", "segments", or a number of sentences.
    window_metadata_key, original_text_metadata_key: metadata keys of the window and of the sentence.
    """

    alpha: float = _CONTEXT.alpha
    context: Literal["mean", "encode"] = _CONTEXT.context
    passages: str | int = "paragraphs"
    window_metadata_key: str = "window"
    original_text_metadata_key: str = "original_text"

    _encoder: Encoder = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Check the settings now; a model of another source is looked for at its first use."""
        super().model_post_init(context)
        ContextSettings(**self._settings())  # checks them
        self._encoder = self._load_encoder()
        self.sentence_splitter_name = load_sentence_splitter().name

    def _settings(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "context": self.context, "passages": self.passages}

    def _pieces(self, documents: Sequence[Document], show_progress: bool) -> Iterator[Piece]:
        options = {"show_progress": show_progress, **self._settings()}
        for piece in weighted_sentences(documents, self._encoder, **options):
            yield piece.chunk, piece.vector

    def _cut(self, parent: BaseNode, pieces: Sequence[Piece]) -> list[TextNode]:
        hidden = {self.window_metadata_key, self.original_text_metadata_key}
        if taken := hidden & parent.metadata.keys():
            raise InputError(
                f"node {parent.node_id} has metadata under {', '.join(sorted(taken))!r} already; "
                "set window_metadata_key= and original_text_metadata_key= to other keys"
            )
        children = super()._cut(parent, pieces)
        for child, (sentence, _) in zip(children, pieces, strict=True):
            start, end = read_facts(sentence.metadata)["window"]
            child.metadata[self.window_metadata_key] = own_text(parent)[start:end]
            child.metadata[self.original_text_metadata_key] = sentence.text
            hide(child, *sorted(hidden))
        return children
