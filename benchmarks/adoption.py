"""A stock app before and after one line of the migration page: evidence and tokens that are sent.

    python -m benchmarks.adoption --data DIR [--sets squad,hotpotqa] [--sample 20] [--characters 150000]

Both frameworks with their own defaults: LlamaIndex SentenceSplitter() and similarity_top_k 2, LangChain
RecursiveCharacterTextSplitter() and k 4, a vector store with the default encoder, over the documents of a set
in seeded order up to --characters. "top 10 and …" is the same app with the larger number that the page says,
and the part. With --whole also the parts that select whole chunks, which take long to rerank.

Evidence: share of a question's evidence characters that are sent, mean over questions. Tokens: sent for a
question, by the encoder's tokenizer; where a model answers, those of the first selection. The difference of
the evidence to the stock app has a 95 % interval, paired by question, resampled by document.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.segmentation.one_line import Piece, covered, draw
from precise_rag import read_facts
from precise_rag.evaluation.datasets import Question
from precise_rag.evaluation.measures.statistics import compare_paired
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.index import HybridIndex
from precise_rag.testing import ScriptedLLM
from precise_rag.types import Document

SETS = "squad,fairytaleqa,covidqa,hotpotqa"
N_FOUND = 10
"""Pieces that a store returns to a part which cuts them down."""

STOCK = ("stock, top 2", "stock, k 4")
"""The apps before any line is changed."""

Ask = Callable[[str], list[Piece]]


class App(NamedTuple):
    """What an app sends for a question, by the lines that were changed; the first is the stock app."""

    name: str
    lines: Mapping[str, Ask]


def llamaindex(documents: Sequence[Document], index: HybridIndex, encoder: Any) -> App:
    """The stock app of LlamaIndex, and its lines."""
    from llama_index.core import Document as Source
    from llama_index.core import VectorStoreIndex
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import MetadataMode

    from llamaindex_precise import (
        EvidencePostprocessor,
        GradientSelectionPostprocessor,
        HybridRetriever,
        PreciseEmbedding,
        PreciseRetriever,
        SelfFeedbackQueryEngine,
    )

    chunks = SentenceSplitter().get_nodes_from_documents([Source(id_=d.id, text=d.text) for d in documents])
    vectors = encoder.encode([chunk.get_content(MetadataMode.EMBED) for chunk in chunks])
    for chunk, vector in zip(chunks, vectors, strict=True):
        chunk.embedding = vector.tolist()
    store = VectorStoreIndex(chunks, embed_model=PreciseEmbedding())
    evidence, gradient = EvidencePostprocessor(), GradientSelectionPostprocessor()

    def pieces(nodes: Sequence[Any]) -> list[Piece]:
        return [
            Piece(n.node.ref_doc_id, n.node.start_char_idx, n.node.end_char_idx, n.node.text) for n in nodes
        ]

    def found(top_k: int, *parts: Any) -> Ask:
        retriever = store.as_retriever(similarity_top_k=top_k)

        def ask(query: str) -> list[Piece]:
            nodes = retriever.retrieve(query)
            for part in parts:
                nodes = part.postprocess_nodes(nodes, query_str=query)
            return pieces(nodes)

        return ask

    def answered(retriever: Any) -> Ask:
        engine = SelfFeedbackQueryEngine(retriever, ScriptedLLM(_answer), feedback=None)
        return lambda query: pieces(engine.query(query).source_nodes)

    return App(
        "LlamaIndex",
        {
            "stock, top 2": found(2),
            "stock, top 2, and `EvidencePostprocessor()`": found(2, evidence),
            "top 10 and `EvidencePostprocessor()`": found(N_FOUND, evidence),
            "top 10 and `GradientSelectionPostprocessor()`": found(N_FOUND, gradient),
            "top 10 and `SelfFeedbackQueryEngine`": answered(store.as_retriever(similarity_top_k=N_FOUND)),
            "`SelfFeedbackQueryEngine` on `HybridRetriever`": answered(HybridRetriever.from_index(index)),
            "`PreciseRetriever`": lambda query: pieces(PreciseRetriever.from_index(index).retrieve(query)),
        },
    )


def langchain(documents: Sequence[Document], index: HybridIndex, encoder: Any) -> App:
    """The stock app of LangChain, and its lines."""
    from langchain_core.documents import Document as Source
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    from langchain_precise import (
        EvidenceCompressor,
        GradientSelectionCompressor,
        HybridRetriever,
        PreciseEmbeddings,
        PreciseRetriever,
        SelfFeedbackChain,
    )

    splitter = RecursiveCharacterTextSplitter(add_start_index=True)
    chunks = splitter.split_documents([Source(d.text, metadata={"source": d.id}) for d in documents])
    store = InMemoryVectorStore.from_documents(chunks, PreciseEmbeddings(encoder))
    evidence, gradient = EvidenceCompressor(), GradientSelectionCompressor()

    def pieces(found: Sequence[Source]) -> list[Piece]:
        return [_placed(document.page_content, document.metadata, read_facts(document)) for document in found]

    def _placed(text: str, metadata: Mapping[str, Any], facts: Mapping[str, Any]) -> Piece:
        if "start_index" not in metadata:
            return Piece(facts["doc_id"], facts["start"], facts["end"], text)
        start = texts[metadata["source"]].find(text, metadata["start_index"])
        return Piece(metadata["source"], start, start + len(text), text)

    texts = {document.id: document.text for document in documents}

    def found(k: int, *parts: Any) -> Ask:
        retriever = store.as_retriever(search_kwargs={"k": k})

        def ask(query: str) -> list[Piece]:
            documents = retriever.invoke(query)
            for part in parts:
                documents = part.compress_documents(documents, query)
            return pieces(documents)

        return ask

    def answered(retriever: Any) -> Ask:
        chain = SelfFeedbackChain(retriever, ScriptedLLM(_answer), feedback=None)
        return lambda query: pieces(chain.invoke(query)["context"])

    return App(
        "LangChain",
        {
            "stock, k 4": found(4),
            "stock, k 4, and `EvidenceCompressor()`": found(4, evidence),
            "k 10 and `EvidenceCompressor()`": found(N_FOUND, evidence),
            "k 10 and `GradientSelectionCompressor()`": found(N_FOUND, gradient),
            "k 10 and `SelfFeedbackChain`": answered(store.as_retriever(search_kwargs={"k": N_FOUND})),
            "`SelfFeedbackChain` on `HybridRetriever`": answered(HybridRetriever.from_index(index)),
            "`PreciseRetriever`": lambda query: pieces(PreciseRetriever.from_index(index).invoke(query)),
        },
    )


FRAMEWORKS = (llamaindex, langchain)


def measure(
    app: App, questions: Sequence[Question], count_tokens: Callable[[list[str]], Any]
) -> Iterator[dict[str, Any]]:
    """One row for each line: evidence and tokens sent, and the difference to the stock app."""
    groups = [q.doc_id or q.evidence[0].doc_id for q in questions]
    base: tuple[np.ndarray, float] | None = None
    for line, ask in app.lines.items():
        sent = [ask(question.text) for question in questions]
        evidence = np.array([covered(q, pieces) for q, pieces in zip(questions, sent, strict=True)])
        tokens = float(np.mean([sum(count_tokens([p.text for p in pieces])) for pieces in sent]))
        base = base or (evidence, tokens)
        gain = compare_paired(evidence, base[0], groups=groups).difference
        yield {
            "app": app.name,
            "line": line,
            "questions": len(questions),
            "evidence": float(evidence.mean()),
            "tokens": tokens,
            "of stock": tokens / base[1],
            "difference": [gain.mean, gain.low, gain.high],
        }


COLUMNS = ("app", "line", "evidence (%)", "tokens", "of the stock app's", "difference (points)")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of one set."""
    body = []
    for row in rows:
        mean, low, high = (100 * value for value in row["difference"])
        body.append(
            [
                row["app"],
                row["line"],
                f"{100 * row['evidence']:.1f}",
                f"{row['tokens']:,.0f}",
                f"{100 * row['of stock']:.0f} %",
                f"{mean:+.1f} ({low:+.1f} to {high:+.1f})" if row["line"] not in STOCK else "",
            ]
        )
    return format_markdown(COLUMNS, body)


def means(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The mean of the sets for each line, without intervals."""
    found = []
    for app, line in dict.fromkeys((row["app"], row["line"]) for row in rows):
        own = [row for row in rows if (row["app"], row["line"]) == (app, line)]
        stock = [row["tokens"] for row in rows if row["app"] == app and row["line"] in STOCK]
        mean = {name: float(np.mean([row[name] for row in own])) for name in ("evidence", "tokens")}
        found.append({"app": app, "line": line, **mean, "of stock": mean["tokens"] / float(np.mean(stock))})
    return found


def means_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The means of the sets."""
    body = [
        [
            row["app"],
            row["line"],
            f"{100 * row['evidence']:.1f}",
            f"{row['tokens']:,.0f}",
            f"{100 * row['of stock']:.0f} %",
        ]
        for row in means(rows)
    ]
    return format_markdown(COLUMNS[:-1], body)


def _answer(prompt: Any) -> str:
    return "An answer."


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, SETS, sample=20)
    parser.add_argument("--characters", type=int, default=150_000, help="of a set's documents (%(default)s)")
    parser.add_argument("--whole", action="store_true", help="also the parts that select whole chunks")
    args = parser.parse_args()
    encoder = record.cached_encoder(args)
    rows: list[dict[str, Any]] = []
    for name in args.sets.split(","):
        documents, questions = draw(name, args)
        index = HybridIndex.build(documents, encoder)
        for framework in FRAMEWORKS:
            app = framework(documents, index, encoder)
            lines = {line: ask for line, ask in app.lines.items() if args.whole or "Gradient" not in line}
            for row in measure(app._replace(lines=lines), questions, encoder.count_tokens):
                rows.append({"set": name, **row})
                print(rows[-1], flush=True)
    about = (__doc__ or "").split("\n\n", 2)[2].strip()
    parts = [f"# One line of the migration page\n\n{about}"]
    parts.append(f"## Mean of {args.sets.replace(',', ', ')}\n\n{means_table(rows)}")
    for name in args.sets.split(","):
        own = [row for row in rows if row["set"] == name]
        parts.append(f"## {name}, {own[0]['questions']} questions\n\n{table(own)}")
    record.save("adoption", "adoption", record.made(__spec__.name, args), "\n\n".join(parts), {"rows": rows})


if __name__ == "__main__":
    main()
