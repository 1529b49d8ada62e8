"""How much of the evidence arrives with other libraries, and with ours: same encoder, same text, same budget.

    python -m benchmarks.peers --data DIR [--sets squad,nq] [--pipelines NAME…]

Other libraries keep their default settings; lengths are counted in the encoder's tokens. Splitters that
encode every sentence several times, and those whose chunks are nearly another's, run on four sets only. A
library that is not installed is left out.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_classic.retrievers.document_compressors import EmbeddingsFilter
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document as Record
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import Document as Source
from llama_index.core.node_parser import (
    SemanticSplitterNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
)

from benchmarks.harness.datasets import question_sets
from benchmarks.harness.run import LEGEND, Pipeline, Retrieve, measure, preset, search, sections
from benchmarks.harness.tables import about, cached_encoder, save, sets_parser
from benchmarks.harness.units import Splitter, Unit, UnitIndex, from_texts, locate_texts, units_of
from langchain_precise import PreciseEmbeddings
from llamaindex_precise import PreciseEmbedding
from precise_rag.index import DenseIndex, HybridIndex, SentenceContextIndex
from precise_rag.protocols import Encoder
from precise_rag.segmentation import Segmenter
from precise_rag.selection import GradientSelector
from precise_rag.types import Document

SETS = "squad,fairytaleqa,hotpotqa,nq,covidqa,cuad,qmsum"
SLOW_SETS = ("squad", "fairytaleqa", "hotpotqa", "nq")
TOP_K = 100

Making = Any
"""Function from an encoder to a splitter."""


def recursive(size: int) -> Making:
    """LangChain's recursive splitter."""

    def make(encoder: Encoder) -> Splitter:
        splitter = RecursiveCharacterTextSplitter(
            chunk_size=size, chunk_overlap=0, length_function=counter(encoder)
        )
        return from_texts(splitter.split_text)

    return make


def sentences_of(size: int, overlap: int = 0) -> Making:
    """LlamaIndex's sentence splitter."""

    def make(encoder: Encoder) -> Splitter:
        count = counter(encoder)
        splitter = SentenceSplitter(
            chunk_size=size, chunk_overlap=overlap, tokenizer=lambda text: [0] * count(text)
        )
        return from_texts(splitter.split_text)

    return make


def window(encoder: Encoder, size: int = 3) -> Splitter:
    """LlamaIndex's sentence window: units are sentences, each returns `size` neighbours on each side."""
    parser = SentenceWindowNodeParser.from_defaults(window_size=size)

    def split(document: Document) -> list[Unit]:
        spans = locate_texts(document, parser.sentence_splitter(document.text))
        ends = [
            (spans[max(0, row - size)].start, spans[row : row + size + 1][-1].end)
            for row in range(len(spans))
        ]
        return [
            Unit(document.id, *around, document.text[start:end])
            for around, (start, end) in zip(ends, spans, strict=True)
        ]

    return split


def langchain_semantic(encoder: Encoder) -> Splitter:
    from langchain_experimental.text_splitter import SemanticChunker

    return from_texts(SemanticChunker(PreciseEmbeddings(encoder)).split_text)


def llamaindex_semantic(encoder: Encoder) -> Splitter:
    parser = SemanticSplitterNodeParser(embed_model=PreciseEmbedding(model_name=encoder.name))

    def split_text(text: str) -> list[str]:
        return [node.text for node in parser.build_semantic_nodes_from_documents([Source(text=text)])]

    return from_texts(split_text)


def chonkie_recursive(encoder: Encoder) -> Splitter:
    from chonkie import RecursiveChunker
    from chonkie.tokenizer import CharacterTokenizer

    count = counter(encoder)
    methods = {"count_tokens": lambda self, text: count(text), "__module__": CharacterTokenizer.__module__}
    tokenizer = type("EncoderTokenizer", (CharacterTokenizer,), methods)()
    chunker = RecursiveChunker(tokenizer=tokenizer, chunk_size=200)
    return from_texts(lambda text: [chunk.text for chunk in chunker.chunk(text)])


def chonkie_semantic(encoder: Encoder) -> Splitter:
    from chonkie import SemanticChunker
    from chonkie.embeddings.base import BaseEmbeddings

    methods = {
        "embed": lambda self, text: encoder.encode([text])[0],
        "embed_batch": lambda self, texts: list(encoder.encode(texts)),
        "dimension": property(lambda self: encoder.dimension),
        "get_tokenizer": lambda self: counter(encoder),
    }
    embeddings = type("EncoderEmbedding", (BaseEmbeddings,), methods)()
    chunker = SemanticChunker(embedding_model=embeddings, chunk_size=200)
    return from_texts(lambda text: [chunk.text for chunk in chunker.chunk(text)])


def semchunk(encoder: Encoder) -> Splitter:
    from semchunk import chunkerify

    return from_texts(chunkerify(counter(encoder), 200))


def segments(encoder: Encoder) -> Splitter:
    """Our chunks."""
    del encoder
    segmenter = Segmenter.from_pretrained("small", max_tokens=200)
    return lambda document: units_of(document, [(c.start, c.end) for c in segmenter.segment(document)])


def counter(encoder: Encoder) -> Any:
    """Function that counts the tokens of a text by an encoder."""
    return lambda text: int(encoder.count_tokens([text])[0])


class Units(NamedTuple):
    """Plain search over the units of a splitter, where an index is expected. search: see `UnitIndex`."""

    making: Making
    search: str = "dense"

    def build(self, documents: Sequence[Document], encoder: Encoder) -> UnitIndex:
        split = self.making(encoder)
        units = [unit for document in documents for unit in split(document)]
        return UnitIndex(documents, units, encoder, self.search)


def langchain(around: Any) -> Pipeline:
    """A retriever of LangChain over its recursive chunks of 200 tokens.

    around: makes it of the embeddings, the records, and a retriever of an in-memory store.
    """

    def build(documents: Sequence[Document], encoder: Encoder) -> Retrieve:
        split, embeddings = recursive(200)(encoder), PreciseEmbeddings(encoder)
        units = [unit for document in documents for unit in split(document)]
        records = [Record(page_content=u.text, metadata={"row": row}) for row, u in enumerate(units)]
        store = InMemoryVectorStore(embeddings)
        store.add_documents(records)
        retriever = around(embeddings, records, store.as_retriever(search_kwargs={"k": TOP_K}))
        return lambda question: [units[r.metadata["row"]] for r in retriever.invoke(question)[:TOP_K]]

    return build


def ensemble(embeddings: Any, records: list[Record], by_vector: Any) -> Any:
    """LangChain's EnsembleRetriever with equal weights."""
    by_word = BM25Retriever.from_documents(records)
    by_word.k = TOP_K
    return EnsembleRetriever(retrievers=[by_word, by_vector], weights=[0.5, 0.5], id_key="row")


def filtered(embeddings: Any, records: list[Record], by_vector: Any) -> Any:
    """LangChain's EmbeddingsFilter at a cosine of 0.4."""
    narrow = EmbeddingsFilter(embeddings=embeddings, k=None, similarity_threshold=0.4)
    return ContextualCompressionRetriever(base_compressor=narrow, base_retriever=by_vector)


PIPELINES: dict[str, Pipeline] = {
    "LangChain recursive 200": search(Units(recursive(200))),
    "LangChain recursive 100": search(Units(recursive(100))),
    "LangChain recursive 400": search(Units(recursive(400))),
    "LangChain SemanticChunker": search(Units(langchain_semantic)),
    "LangChain EnsembleRetriever 200": langchain(ensemble),
    "LangChain EmbeddingsFilter 200": langchain(filtered),
    "LlamaIndex SentenceSplitter 200": search(Units(sentences_of(200))),
    "LlamaIndex SentenceSplitter default": search(Units(sentences_of(1024, 200))),
    "LlamaIndex SemanticSplitter": search(Units(llamaindex_semantic)),
    "LlamaIndex SentenceWindow 3": search(Units(window)),
    "chonkie Recursive 200": search(Units(chonkie_recursive)),
    "chonkie Semantic 200": search(Units(chonkie_semantic)),
    "semchunk 200": search(Units(semchunk)),
    "recursive 200, BM25 + dense": search(Units(recursive(200), "hybrid")),
    "precise segments 200": search(Units(segments)),
    "precise segments in context": search(DenseIndex, chunks="small", chunk_vectors="context"),
    "precise SentenceContext": search(SentenceContextIndex),
    "precise Hybrid": search(HybridIndex),
    # All that the default path ranks: the budget alone decides what is sent.
    "precise whole path": preset(selector=GradientSelector(min_k=1, ratio=0.0)),
    # What `PreciseRAG.from_documents(documents).retrieve(question)` sends.
    "precise as it comes": preset(),
}
"""The first is the one that the others are compared with."""
SLOW = (
    "LangChain SemanticChunker",
    "LlamaIndex SemanticSplitter",
    "chonkie Semantic 200",
    "chonkie Recursive 200",
    "semchunk 200",
    "LangChain recursive 400",
)


def main() -> None:
    parser = sets_parser(__spec__.name, __doc__, SETS, sample=200)
    parser.add_argument("--pipelines", nargs="+", choices=PIPELINES, metavar="NAME", help="and the first one")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    encoder, found = cached_encoder(args), []
    chosen = {name: PIPELINES[name] for name in PIPELINES if not args.pipelines or name in args.pipelines}
    chosen = dict([next(iter(PIPELINES.items()))]) | chosen
    for dataset in question_sets(args):
        here = {name: made for name, made in chosen.items() if dataset.name in SLOW_SETS or name not in SLOW}
        found.append(measure(here, dataset, encoder))
        print(dataset.name, "done", flush=True)
    name = "peers-few" if args.pipelines else "peers"
    save(name, __spec__.name, args, "Peers", LEGEND, about(__doc__), *sections(found))


if __name__ == "__main__":
    main()
