"""More splitters of other libraries by name, for the plans of benchmarks; importing this file adds them.

They keep their default settings. All share the encoder, and all lengths are counted in its tokens.
"""

from typing import Any

from precise_rag._extras import require
from precise_rag.evaluation.splitters import SPLITTERS, Splitter, from_texts, token_counter
from precise_rag.protocols import Encoder


def _langchain_semantic(encoder: Encoder, **options: Any) -> Splitter:
    library = require("langchain_experimental.text_splitter", extra="peers")
    return from_texts(library.SemanticChunker(langchain_embeddings(encoder), **options).split_text)


def _llamaindex_semantic(encoder: Encoder, **options: Any) -> Splitter:
    parsers = require("llama_index.core.node_parser", extra="llamaindex")
    schema = require("llama_index.core.schema", extra="llamaindex")
    parser = parsers.SemanticSplitterNodeParser(embed_model=_llamaindex_embedding(encoder), **options)

    def split_text(text: str) -> list[str]:
        nodes = parser.build_semantic_nodes_from_documents([schema.Document(text=text)])
        return [node.text for node in nodes]

    return from_texts(split_text)


def _chonkie_semantic(encoder: Encoder, chunk_size: int = 200, **options: Any) -> Splitter:
    library = require("chonkie", extra="peers")
    chunker = library.SemanticChunker(
        embedding_model=_chonkie_embedding(encoder), chunk_size=chunk_size, **options
    )
    return from_texts(lambda text: [chunk.text for chunk in chunker.chunk(text)])


def _chonkie_recursive(encoder: Encoder, chunk_size: int = 200, **options: Any) -> Splitter:
    library = require("chonkie", extra="peers")
    tokenizer = _chonkie_tokenizer(encoder)
    chunker = library.RecursiveChunker(tokenizer=tokenizer, chunk_size=chunk_size, **options)
    return from_texts(lambda text: [chunk.text for chunk in chunker.chunk(text)])


def _semchunk(encoder: Encoder, chunk_size: int = 200) -> Splitter:
    return from_texts(require("semchunk", extra="peers").chunkerify(token_counter(encoder), chunk_size))


def langchain_embeddings(encoder: Encoder) -> Any:
    """Wrap an encoder as LangChain Embeddings."""
    base = require("langchain_core.embeddings", extra="langchain").Embeddings
    methods = {
        "embed_documents": lambda self, texts: encoder.encode(texts).tolist(),
        "embed_query": lambda self, text: encoder.encode_queries([text])[0].tolist(),
    }
    return type("EncoderEmbeddings", (base,), methods)()


def _llamaindex_embedding(encoder: Encoder) -> Any:
    base = require("llama_index.core.base.embeddings.base", extra="llamaindex").BaseEmbedding

    def embed_texts(self: Any, texts: list[str]) -> list[list[float]]:
        return encoder.encode(texts).tolist()

    def embed_query(self: Any, query: str) -> list[float]:
        return encoder.encode_queries([query])[0].tolist()

    async def aembed_query(self: Any, query: str) -> list[float]:
        return embed_query(self, query)

    methods = {
        "_get_text_embeddings": embed_texts,
        "_get_text_embedding": lambda self, text: embed_texts(self, [text])[0],
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
        "get_tokenizer": lambda self: token_counter(encoder),
    }
    return type("EncoderEmbedding", (base,), methods)()


def _chonkie_tokenizer(encoder: Encoder) -> Any:
    """Wrap an encoder as a Chonkie tokenizer that counts its tokens; text is cut by characters."""
    base = require("chonkie.tokenizer", extra="peers").CharacterTokenizer
    count = token_counter(encoder)
    methods = {"count_tokens": lambda self, text: count(text), "__module__": base.__module__}
    return type("EncoderTokenizer", (base,), methods)()


SPLITTERS |= {
    "langchain-semantic": _langchain_semantic,
    "llamaindex-semantic": _llamaindex_semantic,
    "chonkie-semantic": _chonkie_semantic,
    "chonkie-recursive": _chonkie_recursive,
    "semchunk": _semchunk,
}
