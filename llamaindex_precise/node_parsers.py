"""Node parsers that cut by exact spans.

Every node's text is `document.text[start_char_idx:end_char_idx]`, also for repeated text and for
nodes cut from nodes.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from itertools import groupby
from typing import Any, Literal

from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import build_nodes_from_splits, default_id_func
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, TextNode
from llama_index.core.utils import get_tokenizer

from llamaindex_precise.component import SettingsComponent
from llamaindex_precise.convert import root_offset, root_source
from llamaindex_precise.embeddings import EncoderComponent, resolve_encoder
from precise_rag import __version__
from precise_rag.checks import check_number
from precise_rag.errors import InputError
from precise_rag.facts import copied, piece_id, read_facts
from precise_rag.index import SentenceContextIndex, weighted_chunks
from precise_rag.index.export import WHOLE
from precise_rag.index.sentence_context import ContextSettings
from precise_rag.metadata_keys import FACTS_KEY
from precise_rag.protocols import Encoder
from precise_rag.segmentation import (
    GreedySegmenter,
    Segmenter,
    SegmenterOptions,
    check_foreign_options,
)
from precise_rag.segmentation.long_sentences import CountTokens
from precise_rag.sentences import load_sentence_splitter
from precise_rag.titles import HEADER_PATH
from precise_rag.types import Candidate, Chunk, Document, FloatArray, Span

dispatcher = get_dispatcher(__name__)

_CONTEXT = ContextSettings()

_MAX_TOKENS = 1100
"""Default limit of a semantic node: as long on average as a node of SentenceSplitter() with its overlap."""


class SpanNodeParser(SettingsComponent, NodeParser):
    """Base of the node parsers: cuts documents, text nodes, or the nodes of another parser.

    Blank documents give no nodes. Nodes cut from a node have offsets in its root document. The
    fields for versions, weights and sentence splitter are filled in by the parser, whatever is
    passed; they let ingestion caches notice a change.
    """

    core_version: str = Field(default="", description="Version of precise-rag; filled in.")
    sentence_splitter_name: str = Field(default="", description="Sentence splitter in use; filled in.")

    tokenizer: Any = Field(
        default=None,
        description="Function from a text to its tokens, which the limit of a node counts.",
    )

    def __init__(self, **settings: Any) -> None:
        super().__init__(**self._own_options(settings))

    @classmethod
    def _own_options(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Take the limit by the name it has in LlamaIndex's parsers; refuse what only those have."""
        settings = dict(given)
        check_foreign_options(settings.keys() - cls.model_fields.keys(), settings.pop("chunk_overlap", 0))
        if isinstance(settings.get("tokenizer"), str):
            raise InputError(
                f"settings saved with the tokenizer {settings['tokenizer']!r} do not hold that function; "
                "pass it again: from_dict(data, tokenizer=…)"
            )
        if "chunk_size" in settings:
            settings |= cls._limit(settings.pop("chunk_size"), settings)
        return settings

    @classmethod
    def _limit(cls, chunk_size: int, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the setting that stands for `chunk_size`."""
        raise InputError("chunk_size is not an option here: the nodes are sentences")

    @field_serializer("tokenizer")
    def _saved_tokenizer(self, tokenizer: Any) -> str | None:
        return None if tokenizer is None else getattr(tokenizer, "__qualname__", type(tokenizer).__name__)

    @property
    def _count_tokens(self) -> CountTokens | None:
        return None if self.tokenizer is None else partial(_lengths, self.tokenizer)

    def model_post_init(self, context: Any) -> None:
        """Fill in the version."""
        super().model_post_init(context)
        self.core_version = __version__

    @dispatcher.span
    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        return await asyncio.to_thread(self._parse_nodes, nodes, show_progress, **kwargs)

    def _segment(
        self, segmenter: Segmenter | GreedySegmenter, nodes: Sequence[BaseNode], show_progress: bool
    ) -> list[BaseNode]:
        """Return the segments of all nodes that are not blank."""
        parents = [node for node in nodes if _text(node).strip()]
        texts = [_text(parent) for parent in parents]
        chunks = segmenter.segment_many(texts, show_progress=show_progress)
        return [
            node for parent, pieces in zip(parents, chunks, strict=True) for node in self._cut(parent, pieces)
        ]

    def _cut(self, parent: BaseNode, spans: Iterable[Chunk | Candidate | Span]) -> list[TextNode]:
        """Return new nodes for `spans` of the parent's text, with offsets in its root document.

        Their ids are UUIDs, the same in every run, unless the parser has an `id_func` of its own.
        """
        cut = list(spans)
        places = [(span.start, span.end) for span in cut]
        try:
            text, source, offset = _text(parent), root_source(parent), root_offset(parent)
            if not isinstance(parent, TextNode):
                parent = _as_text_node(parent)
            children = build_nodes_from_splits([text[s:e] for s, e in places], parent, id_func=self.id_func)
        except ValueError as error:  # the hash of a node prints its metadata
            raise InputError(
                f"node {parent.node_id!r}: LlamaIndex cannot hash its metadata ({error}); "
                "write long numbers as texts"
            ) from error
        has_own_ids = self.id_func is not None and self.id_func is not default_id_func
        for child, span, (start, end) in zip(children, cut, places, strict=True):
            child.embedding = None
            if not has_own_ids:
                child.id_ = piece_id(parent.node_id, start, end)
            child.relationships[NodeRelationship.SOURCE] = source
            if self.include_metadata:
                child.metadata = copied(parent.metadata)
                child.metadata.pop(FACTS_KEY, None)
                if isinstance(span, Chunk) and HEADER_PATH in span.metadata:
                    child.metadata.setdefault(HEADER_PATH, span.metadata[HEADER_PATH])
            if offset is not None:
                child.start_char_idx, child.end_char_idx = offset + start, offset + end
        return children

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Any]
    ) -> list[BaseNode]:
        """Let the base class add source metadata and links between neighbours.

        It does not get the parents: it would search them for each node's text and overwrite exact
        offsets with those of the first match.
        """
        return super()._postprocess_parsed_nodes(nodes, {})


class SemanticSegmentationNodeParser(EncoderComponent, SpanNodeParser):
    """Node parser that cuts where the meaning changes, by a small learned model (SAGE, section IV).

    The nodes of a document join to its text. Headings, lists, tables, code and turns are kept together
    where the limit allows. A node below a heading has the titles above it in `metadata["header_path"]`,
    as nodes of MarkdownNodeParser have, unless its document has that key. The options from `threshold` to
    `text_format` are those of SegmenterOptions, with max_tokens 1,100 by default; the fields show what holds.
    Tokens are those of `tokenizer`; default: of `Settings.tokenizer`, as in LlamaIndex's own splitters.

    With an `embed_model` each node has its vector: the mean of its sentences' vectors, weighted with
    that of the surrounding text and with the vector of the whole node. Search such nodes with the same
    encoder, and put no embedding model after the parser in an IngestionPipeline: it would overwrite the
    vectors. Without an `embed_model` nodes have no vectors, even if `Settings` has one.
    """

    model: str = Field(default="small", description='"small" (CPU), "sage-minilm", or a folder.')
    device: str | None = Field(default=None, description='"cpu", "cuda", …; default: a GPU if there is one.')
    sentence_splitter: str = Field(default="auto", description='"auto", "nupunkt", "sentencex" or "punkt".')
    threshold: float | None = Field(default=None, description="Cut where the score is lower.")
    max_tokens: int | None = Field(default=None, description="Longest node; a limit that always holds.")
    target_tokens: int | None = Field(default=None, description="Shorter nodes only where a topic ends.")
    min_tokens: int | None = Field(default=None, description="Shorter nodes join a neighbour.")
    paragraphs: Literal["hard", "soft"] | None = Field(
        default=None, description='A blank line is always a boundary ("hard") or evidence for one ("soft").'
    )
    coarse_tokens: int | None = Field(default=None, description="Cut into pieces of about this size first.")
    text_format: Literal["markdown", "html", "text"] | None = Field(
        default=None, description="How the texts are marked up; default: detected from each."
    )
    alpha: float = Field(default=_CONTEXT.alpha, description="Weight of a node's vector against its context.")
    whole: float = Field(default=WHOLE, description="Largest weight of the node embedded as a whole; 0: no.")
    weights_sha256: str = Field(default="", description="Checksum of the model in use; filled in.")

    _segmenter: Segmenter = PrivateAttr()
    _encoder: Encoder | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        """Load the model now, not at the first document."""
        super().model_post_init(context)
        names = [option.name for option in fields(SegmenterOptions)]
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        given.setdefault("max_tokens", _MAX_TOKENS)
        self._segmenter = Segmenter.from_pretrained(
            self.model,
            device=self.device,
            splitter=load_sentence_splitter(self.sentence_splitter),
            count_tokens=partial(_lengths, self.tokenizer or get_tokenizer()),
            **given,
        )
        for name in names:
            setattr(self, name, getattr(self._segmenter.options, name))
        self.weights_sha256 = self._segmenter.weights_sha256
        self.sentence_splitter_name = self._segmenter.splitter.name
        ContextSettings(alpha=self.alpha)  # checks it
        check_number("whole", self.whole, least=0, most=1)
        if self.embed_model is not None or self.encoder_name:
            self._encoder = resolve_encoder(self.embed_model, self.encoder_name)
            self.encoder_name = self._encoder.name

    @classmethod
    def _limit(cls, chunk_size: int, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {"max_tokens": chunk_size}

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        if self._encoder is None:
            return self._segment(self._segmenter, nodes, show_progress)
        parents = {str(i): node for i, node in enumerate(nodes)}
        documents = [Document(i, _text(parent)) for i, parent in parents.items()]
        pieces = weighted_chunks(
            documents,
            self._encoder,
            self._segmenter,
            alpha=self.alpha,
            whole=self.whole,
            show_progress=show_progress,
        )
        children: list[BaseNode] = []
        placed = ((read_facts(piece.metadata), piece) for piece in pieces)
        for i, own in groupby(placed, key=lambda placed: placed[0]["doc_id"]):
            facts, weighted = zip(*own, strict=True)
            chunks = [
                Chunk(i, fact["start"], fact["end"], piece.text, metadata=piece.metadata)
                for fact, piece in zip(facts, weighted, strict=True)
            ]
            for child, piece in zip(self._cut(parents[i], chunks), weighted, strict=True):
                child.embedding = piece.vector.tolist()
                children.append(child)
        return children


class GreedySemanticNodeParser(EncoderComponent, SpanNodeParser):
    """Node parser that joins neighbouring sentences while they are alike (ChunkRAG, section 3).

    The nodes of a document join to its text.
    """

    threshold: float | None = Field(default=None, description="Cosine from which neighbours stay together.")
    max_chars: int | None = Field(
        default=None, description="Longest node, in characters, or in tokens of `tokenizer`."
    )

    _segmenter: GreedySegmenter = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Load the encoder now, not at the first document."""
        super().model_post_init(context)
        encoder = resolve_encoder(self.embed_model, self.encoder_name)
        self.encoder_name = encoder.name
        given = {"threshold": self.threshold, "max_chars": self.max_chars}
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self._segmenter = GreedySegmenter(encoder, length_function=self._count_tokens, **options)
        self.threshold, self.max_chars = self._segmenter.threshold, self._segmenter.max_chars
        self.sentence_splitter_name = self._segmenter.splitter.name

    @classmethod
    def _limit(cls, chunk_size: int, settings: Mapping[str, Any]) -> dict[str, Any]:
        if settings.get("tokenizer") is None:
            raise InputError(
                f"chunk_size={chunk_size} would count characters here; pass max_chars={chunk_size}, "
                "or tokenizer= as well, to count its tokens"
            )
        return {"max_chars": chunk_size}

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        return self._segment(self._segmenter, nodes, show_progress)


class SentenceContextNodeParser(EncoderComponent, SpanNodeParser):
    """Node parser that makes a node of each sentence, its context in its vector (ParetoRAG).

    Search the nodes with the same encoder, and put no embedding model after the parser in an
    IngestionPipeline: it would overwrite the vectors. The passage around a sentence is in its
    metadata, hidden from models, for MetadataReplacementPostProcessor (as with
    SentenceWindowNodeParser). White space between sentences belongs to no node.
    """

    alpha: float = Field(default=_CONTEXT.alpha, description="Weight of the sentence against its context.")
    context: Literal["mean", "encode"] = Field(
        default=_CONTEXT.context,
        description='"mean": from the sentence vectors; "encode": encode each context, as in the paper.',
    )
    passages: str | int = Field(
        default="paragraphs", description='"paragraphs", "segments", or a number of sentences.'
    )
    window_metadata_key: str = Field(default="window", description="Metadata key of the passage.")
    original_text_metadata_key: str = Field(
        default="original_text", description="Metadata key of the sentence itself."
    )

    _encoder: Encoder = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Load the encoder now, not at the first document."""
        super().model_post_init(context)
        ContextSettings(alpha=self.alpha, context=self.context, passages=self.passages)  # checks them
        self._encoder = resolve_encoder(self.embed_model, self.encoder_name)
        self.encoder_name = self._encoder.name
        self.sentence_splitter_name = load_sentence_splitter().name

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        parents = {str(i): node for i, node in enumerate(nodes) if _text(node).strip()}
        if not parents:
            return []
        index = SentenceContextIndex.build(
            [Document(i, _text(parent)) for i, parent in parents.items()],
            self._encoder,
            show_progress=show_progress,
            alpha=self.alpha,
            context=self.context,
            passages=self.passages,
        )
        sentences = groupby(index.weighted_vectors(), key=lambda pair: pair[0].doc_id)
        return [node for i, pairs in sentences for node in self._weighted(parents[i], list(pairs))]

    def _weighted(self, parent: BaseNode, pairs: list[tuple[Candidate, FloatArray]]) -> list[TextNode]:
        hidden = {self.window_metadata_key, self.original_text_metadata_key}
        if taken := hidden & parent.metadata.keys():
            raise InputError(
                f"node {parent.node_id} has metadata under {', '.join(sorted(taken))!r} already; "
                "set window_metadata_key= and original_text_metadata_key= to other keys"
            )
        children = self._cut(parent, [candidate for candidate, _ in pairs])
        for child, (candidate, vector) in zip(children, pairs, strict=True):
            start, end = candidate.passage or (candidate.start, candidate.end)
            child.embedding = vector.tolist()
            child.metadata = {
                **child.metadata,
                self.window_metadata_key: _text(parent)[start:end],
                self.original_text_metadata_key: candidate.text,
            }
            for keys in (child.excluded_embed_metadata_keys, child.excluded_llm_metadata_keys):
                keys.extend(sorted(hidden - set(keys)))
        return children


def _as_text_node(node: BaseNode) -> TextNode:
    """Return the text of a multimodal node as a node that LlamaIndex can cut."""
    return TextNode(
        id_=node.node_id,
        text=_text(node),
        metadata=node.metadata,
        excluded_embed_metadata_keys=node.excluded_embed_metadata_keys,
        excluded_llm_metadata_keys=node.excluded_llm_metadata_keys,
        relationships=node.relationships,
    )


def _lengths(tokenizer: Callable[[str], Sequence[Any]], texts: Sequence[str]) -> list[int]:
    return [len(tokenizer(text)) for text in texts]


def _text(node: BaseNode) -> str:
    return node.get_content(MetadataMode.NONE)
