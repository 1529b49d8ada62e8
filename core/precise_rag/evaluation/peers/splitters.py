"""Splitters by name: this library's own, and those of other libraries with their default settings.

An entry of `SPLITTERS` takes an encoder and options and returns a function from a document to its
units. All splitters share the encoder, and all lengths are counted in its tokens. A library is
imported when its splitter is first used.
"""

from collections.abc import Callable, Sequence
from typing import Any

from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.evaluation.peers.units import Unit, locate_texts
from precise_rag.protocols import Encoder
from precise_rag.segmentation import GreedySegmenter, Segmenter
from precise_rag.sentences import split_sentences
from precise_rag.types import Document

PeerSplitter = Callable[[Document], list[Unit]]
"""Splits a document into units, in order."""


def load_peer_splitter(name: str, encoder: Encoder, **options: Any) -> PeerSplitter:
    """Return the splitter `name` with its options.

    Raises InputError for an unknown name or option, and MissingExtra if its library is not installed.
    """
    if name not in SPLITTERS:
        raise InputError(f"splitter must be one of {', '.join(SPLITTERS)}, got {name!r}")
    try:
        return SPLITTERS[name](encoder, **options)
    except TypeError as error:
        raise InputError(f"splitter {name!r}: {error}") from error


def _langchain_recursive(encoder: Encoder, chunk_size: int = 200, chunk_overlap: int = 0) -> PeerSplitter:
    library = require("langchain_text_splitters", extra="langchain")
    splitter = library.RecursiveCharacterTextSplitter(
        chunk_size=chunk_size, chunk_overlap=chunk_overlap, length_function=_counter(encoder)
    )
    return _from_texts(splitter.split_text)


def _langchain_semantic(encoder: Encoder, **options: Any) -> PeerSplitter:
    library = require("langchain_experimental.text_splitter", extra="peers")
    return _from_texts(library.SemanticChunker(langchain_embeddings(encoder), **options).split_text)


def _llamaindex_sentence(encoder: Encoder, chunk_size: int = 200, chunk_overlap: int = 0) -> PeerSplitter:
    library = require("llama_index.core.node_parser", extra="llamaindex")
    splitter = library.SentenceSplitter(
        chunk_size=chunk_size, chunk_overlap=chunk_overlap, tokenizer=_tokens(encoder)
    )
    return _from_texts(splitter.split_text)


def _llamaindex_semantic(encoder: Encoder, **options: Any) -> PeerSplitter:
    parsers = require("llama_index.core.node_parser", extra="llamaindex")
    schema = require("llama_index.core.schema", extra="llamaindex")
    parser = parsers.SemanticSplitterNodeParser(embed_model=_llamaindex_embedding(encoder), **options)

    def split_text(text: str) -> list[str]:
        nodes = parser.build_semantic_nodes_from_documents([schema.Document(text=text)])
        return [node.text for node in nodes]

    return _from_texts(split_text)


def _llamaindex_window(encoder: Encoder, window_size: int = 3) -> PeerSplitter:
    """Units are sentences; each returns its neighbours too, `window_size` on either side."""
    parsers = require("llama_index.core.node_parser", extra="llamaindex")
    parser = parsers.SentenceWindowNodeParser.from_defaults(window_size=window_size)

    def split(document: Document) -> list[Unit]:
        spans = locate_texts(document, parser.sentence_splitter(document.text))
        return [
            Unit(
                document.id,
                spans[max(0, row - window_size)].start,
                spans[min(len(spans) - 1, row + window_size)].end,
                document.text[start:end],
            )
            for row, (start, end) in enumerate(spans)
        ]

    return split


def _chonkie_semantic(encoder: Encoder, chunk_size: int = 200, **options: Any) -> PeerSplitter:
    library = require("chonkie", extra="peers")
    chunker = library.SemanticChunker(
        embedding_model=_chonkie_embedding(encoder), chunk_size=chunk_size, **options
    )
    return _from_texts(lambda text: [chunk.text for chunk in chunker.chunk(text)])


def _chonkie_recursive(encoder: Encoder, chunk_size: int = 200, **options: Any) -> PeerSplitter:
    library = require("chonkie", extra="peers")
    tokenizer = _chonkie_tokenizer(encoder)
    chunker = library.RecursiveChunker(tokenizer=tokenizer, chunk_size=chunk_size, **options)
    return _from_texts(lambda text: [chunk.text for chunk in chunker.chunk(text)])


def _semchunk(encoder: Encoder, chunk_size: int = 200) -> PeerSplitter:
    return _from_texts(require("semchunk", extra="peers").chunkerify(_counter(encoder), chunk_size))


def _sentences(encoder: Encoder) -> PeerSplitter:
    del encoder
    return lambda document: _units(document, split_sentences(document.text))


def _precise(encoder: Encoder, model: str = "small", **options: Any) -> PeerSplitter:
    del encoder
    return _from_segmenter(Segmenter.from_pretrained(model, **options))


def _precise_greedy(encoder: Encoder, **options: Any) -> PeerSplitter:
    return _from_segmenter(GreedySegmenter(encoder, **options))


SPLITTERS: dict[str, Callable[..., PeerSplitter]] = {
    "langchain-recursive": _langchain_recursive,
    "langchain-semantic": _langchain_semantic,
    "llamaindex-sentence": _llamaindex_sentence,
    "llamaindex-semantic": _llamaindex_semantic,
    "llamaindex-window": _llamaindex_window,
    "chonkie-semantic": _chonkie_semantic,
    "chonkie-recursive": _chonkie_recursive,
    "semchunk": _semchunk,
    "sentences": _sentences,
    "precise": _precise,
    "precise-greedy": _precise_greedy,
}
"""Splitter names of a plan file to functions of an encoder and options."""

OWN_SPLITTERS = ("sentences", "precise", "precise-greedy")
"""Splitters of this library."""


def _from_texts(split_text: Callable[[str], Sequence[str]]) -> PeerSplitter:
    def split(document: Document) -> list[Unit]:
        return _units(document, locate_texts(document, split_text(document.text)))

    return split


def _from_segmenter(segmenter: Segmenter | GreedySegmenter) -> PeerSplitter:
    return lambda document: _units(document, [(c.start, c.end) for c in segmenter.segment(document)])


def _units(document: Document, spans: Sequence[tuple[int, int]]) -> list[Unit]:
    units = (Unit(document.id, start, end, document.text[start:end].strip()) for start, end in spans)
    return [unit for unit in units if unit.text]


def _counter(encoder: Encoder) -> Callable[[str], int]:
    return lambda text: int(encoder.count_tokens([text])[0])


def _tokens(encoder: Encoder) -> Callable[[str], list[int]]:
    return lambda text: [0] * int(encoder.count_tokens([text])[0])


def langchain_embeddings(encoder: Encoder) -> Any:
    """Wrap an encoder as LangChain Embeddings."""
    base = require("langchain_core.embeddings", extra="langchain").Embeddings
    methods = {
        "embed_documents": lambda self, texts: [row.tolist() for row in encoder.encode(texts)],
        "embed_query": lambda self, text: encoder.encode_queries([text])[0].tolist(),
    }
    return type("EncoderEmbeddings", (base,), methods)()


def _llamaindex_embedding(encoder: Encoder) -> Any:
    base = require("llama_index.core.base.embeddings.base", extra="llamaindex").BaseEmbedding

    def embed_texts(self: Any, texts: list[str]) -> list[list[float]]:
        return [row.tolist() for row in encoder.encode(texts)]

    def embed_text(self: Any, text: str) -> list[float]:
        return embed_texts(self, [text])[0]

    def embed_query(self: Any, query: str) -> list[float]:
        return [float(value) for value in encoder.encode_queries([query])[0]]

    async def aembed_query(self: Any, query: str) -> list[float]:
        return embed_query(self, query)

    methods = {
        "_get_text_embeddings": embed_texts,
        "_get_text_embedding": embed_text,
        "_get_query_embedding": embed_query,
        "_aget_query_embedding": aembed_query,
    }
    return type("EncoderEmbedding", (base,), methods)(embed_batch_size=512)


def _chonkie_embedding(encoder: Encoder) -> Any:
    base = require("chonkie.embeddings.base", extra="peers").BaseEmbeddings
    methods = {
        "embed": lambda self, text: encoder.encode([text])[0],
        "embed_batch": lambda self, texts: list(encoder.encode(texts)),
        "dimension": property(lambda self: encoder.dimension),
        "get_tokenizer": lambda self: _counter(encoder),
    }
    return type("EncoderEmbedding", (base,), methods)()


def _chonkie_tokenizer(encoder: Encoder) -> Any:
    """Wrap an encoder as a Chonkie tokenizer that counts its tokens; text is cut by characters."""
    base = require("chonkie.tokenizer", extra="peers").CharacterTokenizer
    count = _counter(encoder)
    methods = {"count_tokens": lambda self, text: count(text), "__module__": base.__module__}
    return type("EncoderTokenizer", (base,), methods)()
