"""What a model reads in a stock app and after one line: the prompt as the framework writes it.

    python -m benchmarks.adoption.prompts --data DIR [--sets documentation,squad] [--lines stock,ours]

Files in a folder, read by LlamaIndex's SimpleDirectoryReader, or as UTF-8 for LangChain, whose packages here
have no reader. LlamaIndex embeds the path of a file with each stock chunk, so the folder has a fixed name.
Each framework with its defaults: SentenceSplitter() and similarity_top_k 2, or
RecursiveCharacterTextSplitter() and k 4, a vector store with the default encoder; RetrieverQueryEngine and
create_stuff_documents_chain write the prompt. Documentation: `benchmarks/adoption/documentation.py`. The
other sets: development sets, documents that no model of ours was trained on, up to --characters.

prompt: share of the questions whose answer is in the prompt, all its passages. one piece: in one of the
pieces, as written, with what stands above it there. first: in the first piece. tokens: those of the prompt
less those of one without a piece, as OpenAI's cl100k_base counts. verbatim: share of the pieces whose text is
a slice of the file as read. order: share of the neighbouring pieces of one document that stand as there.
alone: share of the pieces with five words or fewer.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document as Page
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
from benchmarks import record
from benchmarks.adoption.app import N_FOUND, RememberingReranker
from benchmarks.adoption.documentation import Asked, plain, read_questions, write_documents
from benchmarks.adoption.langchain import K
from benchmarks.adoption.llamaindex import TOP_K
from benchmarks.questions import held_out
from benchmarks.tables import table

MODULE = "benchmarks.adoption.prompts"
_FEW_WORDS = 5


class Piece(NamedTuple):
    """A piece of a prompt. file: its file. text: its own text. written: the text in the prompt."""

    file: str
    text: str
    written: str


class Sent(NamedTuple):
    """What a model reads for a question. tokens: of the prompt, without those of an empty one."""

    pieces: Sequence[Piece]
    prompt: str
    tokens: int


Ask = Callable[[str], Sent]


class _Reading(MockLLM):
    """A model that keeps its prompts."""

    prompts: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=10**6)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        self.prompts.append(prompt)
        return super().complete(prompt, formatted, **kwargs)


def llamaindex_lines(folder: Path, encoder: Any, reranker: Any) -> Iterator[tuple[str, str, Ask]]:
    """The lines of an app of LlamaIndex, by group."""
    documents = SimpleDirectoryReader(str(folder), recursive=True).load_data()
    llm, count = _Reading(max_tokens=1), get_tokenizer()
    embedding = llamaindex_precise.PreciseEmbedding()
    store = VectorStoreIndex.from_documents(
        documents, transformations=[SentenceSplitter()], embed_model=embedding
    )

    def asking(retriever: Any, *parts: Any) -> Ask:
        engine = RetrieverQueryEngine.from_args(retriever, llm=llm, node_postprocessors=list(parts))

        def ask(query: str) -> Sent:
            llm.prompts.clear()
            nodes = engine.query(query).source_nodes
            prompt = "\n".join(llm.prompts)
            pieces = [
                Piece(n.node.metadata["file_path"], n.node.text, n.node.get_content(MetadataMode.LLM))
                for n in nodes
            ]
            written = sum(len(count(part)) for part in llm.prompts)
            return Sent(pieces, prompt, written - len(count(_EMPTY.format(query=query))) if pieces else 0)

        return ask

    evidence = llamaindex_precise.EvidencePostprocessor(reranker=reranker)
    few, many = (store.as_retriever(similarity_top_k=k) for k in (TOP_K, N_FOUND))
    yield "stock", f"top {TOP_K}", asking(few)
    yield "parts", f"top {TOP_K} and `EvidencePostprocessor()`", asking(few, evidence)
    yield "parts", f"top {N_FOUND} and `EvidencePostprocessor()`", asking(many, evidence)
    retriever = llamaindex_precise.PreciseRetriever
    ours = retriever.from_documents(documents, encoder, reranker=reranker)
    single = retriever.from_documents(documents, encoder, reranker=reranker, order="score")
    yield "ours", '`PreciseRetriever(order="score")`', asking(single)
    yield "ours", "`PreciseRetriever`", asking(ours)


_EMPTY = (
    "Context information is below.\n---------------------\n\n---------------------\n"
    "Given the context information and not prior knowledge, answer the query.\nQuery: {query}\nAnswer: "
)
"""LlamaIndex's prompt without any piece."""


def langchain_lines(folder: Path, encoder: Any, reranker: Any) -> Iterator[tuple[str, str, Ask]]:
    """The lines of an app of LangChain, by group."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    documents = [
        Page(path.read_text("utf-8"), id=str(path), metadata={"source": str(path)}) for path in files
    ]
    count = get_tokenizer()
    store = InMemoryVectorStore(langchain_precise.PreciseEmbeddings())
    store.add_documents(RecursiveCharacterTextSplitter().split_documents(documents))
    prompt = PromptTemplate.from_template("Answer from the context.\n\n{context}\n\nQuestion: {input}")
    plain_prompt = PromptTemplate.from_template("{page_content}")

    def asking(retriever: Any, shown: PromptTemplate = plain_prompt, part: Any = None) -> Ask:
        chain = create_stuff_documents_chain(
            RunnableLambda(lambda value: value.to_string()), prompt, document_prompt=shown
        )

        def ask(query: str) -> Sent:
            found = retriever.invoke(query)
            found = found if part is None else part.compress_documents(found, query)
            written, empty = (chain.invoke({"context": pages, "input": query}) for pages in (found, []))
            pieces = [
                Piece(
                    page.metadata["source"],
                    page.page_content,
                    shown.format(page_content=page.page_content, **_section(page)),
                )
                for page in found
            ]
            return Sent(pieces, written, len(count(written)) - len(count(empty)))

        return ask

    evidence = langchain_precise.EvidenceCompressor(reranker=reranker)
    few, many = (store.as_retriever(search_kwargs={"k": k}) for k in (K, N_FOUND))
    with_section = langchain_precise.DOCUMENT_PROMPT
    yield "stock", f"k {K}", asking(few)
    yield "parts", f"k {K} and `EvidenceCompressor()`", asking(few, with_section, evidence)
    yield "parts", f"k {N_FOUND} and `EvidenceCompressor()`", asking(many, with_section, evidence)
    retriever = langchain_precise.PreciseRetriever
    ours = retriever.from_documents(documents, encoder, reranker=reranker)
    single = retriever.from_documents(documents, encoder, reranker=reranker, order="score")
    yield "ours", '`PreciseRetriever(order="score")`', asking(single)
    yield "ours", "`PreciseRetriever` and `DOCUMENT_PROMPT`", asking(ours, with_section)


def _section(page: Page) -> dict[str, str]:
    return {"section": page.metadata["section"]} if "section" in page.metadata else {}


FRAMEWORKS = {"LlamaIndex": llamaindex_lines, "LangChain": langchain_lines}


def measured(sent: Sent, asked: Asked, texts: Mapping[str, str]) -> dict[str, float]:
    """What one prompt is worth; texts: of the files as read."""
    wanted = [plain(passage) for passage in asked.answer]
    written = [plain(piece.written) for piece in sent.pieces]
    whole = plain(sent.prompt)
    answered = [all(passage in text for passage in wanted) for text in written]
    verbatim = [piece.text in texts[piece.file] for piece in sent.pieces]
    beside = [(a, b) for a, b in pairwise(sent.pieces) if a.file == b.file]
    return {
        "prompt": float(all(passage in whole for passage in wanted)),
        "one piece": float(any(answered)),
        "first": float(answered[:1] == [True]),
        "pieces": len(sent.pieces),
        "tokens": sent.tokens,
        "verbatim": sum(verbatim),
        "beside": len(beside),
        "in order": sum(texts[a.file].find(a.text) <= texts[b.file].rfind(b.text) for a, b in beside),
        "alone": sum(len(piece.text.split()) <= _FEW_WORDS for piece in sent.pieces),
    }


def row(app: str, line: str, found: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """A line of the table."""
    total = {key: float(np.sum([one[key] for one in found])) for key in found[0]}

    def share(part: str, whole: float) -> int | str:
        return round(100 * total[part] / whole) if whole else "-"

    return {
        "app": app,
        "line": line,
        **{f"{key} (%)": share(key, len(found)) for key in ("prompt", "one piece", "first")},
        "pieces": total["pieces"] / len(found),
        "tokens": round(total["tokens"] / len(found)),
        "verbatim (%)": share("verbatim", total["pieces"]),
        "order (%)": share("in order", total["beside"]),
        "alone (%)": share("alone", total["pieces"]),
    }


def prepared(name: str, folder: Path, args: Any) -> list[Asked]:
    """Write the documents of a set into a folder; return the questions about them."""
    if name == "documentation":
        names = set(write_documents(folder))
        asked = [asked for asked in read_questions() if asked.document in names]
        chosen = np.random.default_rng(args.seed).permutation(len(asked))[: args.sample]
        return [asked[place] for place in sorted(chosen.tolist())]
    documents, questions = held_out(name, args)
    texts = {document.id: document.text for document in documents}
    for number, text in enumerate(texts.values()):
        (folder / f"{number}.txt").write_text(text, "utf-8")
    return [
        Asked("", name, q.text, tuple(texts[e.doc_id][e.start : e.end] for e in q.evidence))
        for q in questions
    ]


def main() -> None:
    parser = record.parse_arguments(MODULE, __doc__, "documentation", sample=75)
    record.add_characters(parser, 100_000)
    parser.add_argument("--lines", default="stock,parts,ours", help="(%(default)s)")
    args = parser.parse_args()
    encoder, reranker = record.cached_encoder(args), RememberingReranker()
    parts = [f"# The prompt before and after one line\n\n{record.about(__doc__)}"]
    for name in args.sets.split(","):
        body = []
        folder = Path(tempfile.gettempdir(), f"precise-{name}").resolve()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        questions = prepared(name, folder, args)
        texts = {str(path): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}
        lines = (
            (app, line)
            for app, lines_of in FRAMEWORKS.items()
            for line in lines_of(folder, encoder, reranker)
        )
        for app, (group, line, ask) in lines:
            if group not in args.lines.split(","):
                continue
            found = [measured(ask(asked.question), asked, texts) for asked in questions]
            body.append(row(app, line, found))
            print(name, body[-1], flush=True)
        parts.append(f"## {name}, {len(questions)} questions\n\n{table(body)}")
    stem = "-".join(["prompts", *(args.sets.split(",") if args.sets != "documentation" else ())])
    record.save(stem, record.made(MODULE, args), "\n\n".join(parts))


if __name__ == "__main__":
    main()
