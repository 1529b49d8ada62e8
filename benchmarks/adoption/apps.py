"""A stock application of each framework over the files of a folder, and the same with one line changed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms import LLMMetadata, MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode
from llama_index.core.utils import get_tokenizer

import langchain_precise
import llamaindex_precise

TOP_K, K, MANY = 2, 4, 10
"""What an application of LlamaIndex and of LangChain retrieves by default, and the migration page's larger
number."""
NEAREST = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30)
"""The numbers that the stock applications are measured with."""


class Piece(NamedTuple):
    """A piece of a prompt. file: its file. text: its own text. written: the text in the prompt."""

    file: str
    text: str
    written: str


class Sent(NamedTuple):
    """What a model reads for a question. tokens: of the prompt, without those of an empty one."""

    pieces: list[Piece]
    prompt: str
    tokens: int


class Line(NamedTuple):
    """A line of an application. nearest: the number of pieces of a stock application, else None."""

    app: str
    code: str
    ask: Callable[[str], Sent]
    nearest: int | None = None


class _Listening(MockLLM):
    """A model that keeps its prompts."""

    prompts: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=10**6)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        self.prompts.append(prompt)
        return super().complete(prompt, formatted, **kwargs)


def llamaindex(folder: Path, encoder: Any, reranker: Any) -> Iterator[Line]:
    """Yield the lines of an application of LlamaIndex."""
    documents = SimpleDirectoryReader(str(folder), recursive=True).load_data()
    llm, count = _Listening(max_tokens=1), get_tokenizer()
    embedding = llamaindex_precise.PreciseEmbedding()

    def store_of(parser: Any) -> VectorStoreIndex:
        return VectorStoreIndex.from_documents(documents, transformations=[parser], embed_model=embedding)

    def asking(retriever: Any, *parts: Any) -> Callable[[str], Sent]:
        engine = RetrieverQueryEngine.from_args(retriever, llm=llm, node_postprocessors=list(parts))

        def ask(query: str) -> Sent:
            llm.prompts.clear()
            found = [item.node for item in engine.query(query).source_nodes]
            pieces = [Piece(n.metadata["file_path"], n.text, n.get_content(MetadataMode.LLM)) for n in found]
            tokens = sum(len(count(part)) for part in llm.prompts) - len(count(_EMPTY.format(query=query)))
            return Sent(pieces, "\n".join(llm.prompts), tokens if pieces else 0)

        return ask

    def best(store: VectorStoreIndex, k: int, *parts: Any) -> Callable[[str], Sent]:
        return asking(store.as_retriever(similarity_top_k=k), *parts)

    stock, app = store_of(SentenceSplitter()), "LlamaIndex"
    yield from (Line(app, f"top {k}", best(stock, k), k) for k in NEAREST)
    evidence = llamaindex_precise.EvidencePostprocessor(reranker=reranker)
    for k in (TOP_K, MANY):
        yield Line(app, f"top {k} and `EvidencePostprocessor()`", best(stock, k, evidence))
    parser = llamaindex_precise.SemanticSegmentationNodeParser()
    yield Line(app, f"`SemanticSegmentationNodeParser()`, top {TOP_K}", best(store_of(parser), TOP_K))
    retriever = llamaindex_precise.PreciseRetriever.from_documents
    yield Line(app, "`PreciseRetriever`", asking(retriever(documents, encoder, reranker=reranker)))


_EMPTY = (
    "Context information is below.\n---------------------\n\n---------------------\n"
    "Given the context information and not prior knowledge, answer the query.\nQuery: {query}\nAnswer: "
)
"""LlamaIndex's prompt without any piece."""


def langchain(folder: Path, encoder: Any, reranker: Any) -> Iterator[Line]:
    """Yield the lines of an application of LangChain."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    documents = [
        Document(path.read_text("utf-8"), id=str(path), metadata={"source": str(path)}) for path in files
    ]
    count, embeddings = get_tokenizer(), langchain_precise.PreciseEmbeddings()
    prompt = PromptTemplate.from_template("Answer from the context.\n\n{context}\n\nQuestion: {input}")

    def store_of(splitter: Any) -> InMemoryVectorStore:
        return InMemoryVectorStore.from_documents(splitter.split_documents(documents), embeddings)

    def asking(retriever: Any, shown: PromptTemplate, part: Any = None) -> Callable[[str], Sent]:
        model = RunnableLambda(lambda value: value.to_string())
        chain = create_stuff_documents_chain(model, prompt, document_prompt=shown)

        def ask(query: str) -> Sent:
            found = retriever.invoke(query)
            found = found if part is None else part.compress_documents(found, query)
            written, empty = (chain.invoke({"context": pages, "input": query}) for pages in (found, []))
            pieces = [Piece(p.metadata["source"], p.page_content, _written(p, shown)) for p in found]
            return Sent(pieces, written, len(count(written)) - len(count(empty)))

        return ask

    def best(store: InMemoryVectorStore, k: int, shown: Any, *parts: Any) -> Callable[[str], Sent]:
        return asking(store.as_retriever(search_kwargs={"k": k}), shown, *parts)

    plain, ours = PromptTemplate.from_template("{page_content}"), langchain_precise.DOCUMENT_PROMPT
    stock, app = store_of(RecursiveCharacterTextSplitter()), "LangChain"
    yield from (Line(app, f"k {k}", best(stock, k, plain), k) for k in NEAREST)
    evidence = langchain_precise.EvidenceCompressor(reranker=reranker)
    for k in (K, MANY):
        yield Line(app, f"k {k} and `EvidenceCompressor()`", best(stock, k, ours, evidence))
    splitter = langchain_precise.SemanticSegmentationTextSplitter()
    yield Line(app, f"`SemanticSegmentationTextSplitter()`, k {K}", best(store_of(splitter), K, plain))
    retriever = langchain_precise.PreciseRetriever.from_documents
    yield Line(app, "`PreciseRetriever`", asking(retriever(documents, encoder, reranker=reranker), ours))


def _written(page: Document, shown: PromptTemplate) -> str:
    section = {"section": page.metadata["section"]} if "section" in page.metadata else {}
    return shown.format(page_content=page.page_content, **section)
