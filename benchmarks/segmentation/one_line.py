"""A stock app before and after its splitter is changed, by one line, to this library's.

    python -m benchmarks.segmentation.one_line --data DIR [--sets nq,squad] [--characters 400000]

Both frameworks with their own defaults: LlamaIndex SentenceSplitter() and similarity_top_k 2, LangChain
RecursiveCharacterTextSplitter() and k 4. Plain dense search by the cosine of the encoder's vectors of the
chunks, or with --search words plain BM25, over all documents of a set, in seeded order up to --characters.
Evidence: the share of a question's evidence characters that are in the chunks sent, mean over questions.
Tokens: sent for each question, by the encoder's tokenizer; mean chunk: of all chunks, likewise. The
difference has a 95 % interval, paired by question, resampled by document. `in context` is the same splitter
with the vectors in context, by its one further argument. Means count each set once; their intervals take the
sets as independent. A cut a little earlier or later moves a set by some points, whoever made it, so every
figure is the mean over --sizes, by which the default limits of all splitters are multiplied.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import bm25s
import numpy as np

from benchmarks import record
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.datasets import Question
from precise_rag.evaluation.measures.statistics import compare_paired
from precise_rag.index.arrays.words import split_words
from precise_rag.types import Document

SETS = "nq,fairytaleqa,qmsum,squad,cuad,covidqa,hotpotqa,rgb," + ",".join(
    f"xquad/{language}" for language in ("en", "de", "es", "ru", "ar", "zh")
)


class Piece(NamedTuple):
    """A chunk that an app stores. text: what is embedded. vector: if the splitter made it."""

    doc_id: str
    start: int
    end: int
    text: str
    vector: np.ndarray | None = None


Splitter = Callable[[Sequence[Document]], list[Piece]]


def llamaindex(parser: Any) -> Splitter:
    from llama_index.core.schema import Document as Source
    from llama_index.core.schema import MetadataMode

    def split(documents: Sequence[Document]) -> list[Piece]:
        nodes = parser.get_nodes_from_documents([Source(id_=d.id, text=d.text) for d in documents])
        return [
            Piece(
                node.ref_doc_id,
                node.start_char_idx,
                node.end_char_idx,
                node.get_content(MetadataMode.EMBED),
                None if node.embedding is None else np.array(node.embedding, dtype=np.float32),
            )
            for node in nodes
        ]

    return split


def langchain(splitter: Any) -> Splitter:
    from langchain_core.documents import Document as Source

    def split(documents: Sequence[Document]) -> list[Piece]:
        found = splitter.split_documents(
            [Source(page_content=d.text, metadata={"source_id": d.id}) for d in documents]
        )
        return [
            Piece(
                piece.metadata["source_id"],
                piece.metadata["start_index"],
                piece.metadata["start_index"] + len(piece.page_content),
                piece.page_content,
            )
            for piece in found
        ]

    return split


def in_context(splitter: Any) -> Splitter:
    """A splitter of LangChain whose embeddings know its pieces."""
    plain = langchain(splitter)

    def split(documents: Sequence[Document]) -> list[Piece]:
        pieces = plain(documents)
        vectors = splitter.embeddings.embed_documents([piece.text for piece in pieces])
        return [
            piece._replace(vector=np.array(vector, dtype=np.float32))
            for piece, vector in zip(pieces, vectors, strict=True)
        ]

    return split


def apps(options: dict[str, Any], encoder: Any, size: float) -> dict[str, dict[str, Splitter]]:
    """The splitters of both frameworks by name; the first of each is the stock one.

    encoder: for the vectors in context; None leaves them out. size: factor of the default limits.
    """
    from langchain_text_splitters import RecursiveCharacterTextSplitter
    from llama_index.core.node_parser import SentenceSplitter

    from langchain_precise import SemanticSegmentationTextSplitter
    from llamaindex_precise import SemanticSegmentationNodeParser

    nodes = {"chunk_size": round(size * SemanticSegmentationNodeParser().max_tokens)}
    pieces = {"chunk_size": round(size * 4000), "add_start_index": True}
    found = {
        "LlamaIndex, top 2": {
            "SentenceSplitter()": llamaindex(SentenceSplitter(chunk_size=round(size * 1024))),
            "SemanticSegmentationNodeParser()": llamaindex(
                SemanticSegmentationNodeParser(**nodes, **options)
            ),
        },
        "LangChain, top 4": {
            "RecursiveCharacterTextSplitter()": langchain(RecursiveCharacterTextSplitter(**pieces)),
            "SemanticSegmentationTextSplitter()": langchain(
                SemanticSegmentationTextSplitter(**pieces, **options)
            ),
        },
    }
    if encoder is not None:
        parser = SemanticSegmentationNodeParser(embed_model=encoder, **nodes, **options)
        found["LlamaIndex, top 2"]["the same, in context"] = llamaindex(parser)
        splitter = SemanticSegmentationTextSplitter(embeddings=encoder, **pieces, **options)
        found["LangChain, top 4"]["the same, in context"] = in_context(splitter)
    return found


def draw(name: str, args: Any) -> tuple[list[Document], list[Question]]:
    """Documents of a set up to --characters, and questions about them, in seeded order."""
    dataset = load_development_set(name, args.data)
    rng = np.random.default_rng(args.seed)
    documents, size = [], 0
    for place in rng.permutation(len(dataset.documents)).tolist():
        document = dataset.documents[place]
        if not documents or size + len(document.text) <= args.characters:
            documents.append(document)
            size += len(document.text)
    known = {document.id for document in documents}
    questions = [q for q in dataset.questions if q.evidence and all(e.doc_id in known for e in q.evidence)]
    chosen = rng.permutation(len(questions))[: args.sample]
    return documents, [questions[place] for place in chosen.tolist()]


def covered(question: Question, pieces: Sequence[Piece]) -> float:
    """Share of the question's evidence that is in the pieces."""
    total = inside = 0
    for doc_id, start, end in (e[:3] for e in question.evidence):
        marks = np.zeros(end - start, dtype=np.bool_)
        for piece in pieces:
            if piece.doc_id == doc_id and piece.start < end and piece.end > start:
                marks[max(piece.start - start, 0) : piece.end - start] = True
        total, inside = total + len(marks), inside + int(marks.sum())
    return inside / total


def word_scores(texts: Sequence[str], queries: Sequence[str]) -> np.ndarray:
    """(q, n) plain BM25 scores of n texts for q queries."""
    index = bm25s.BM25()
    index.index([split_words(text) for text in texts], show_progress=False)
    return np.stack([index.get_scores(split_words(query)) for query in queries])


def measure(
    splitter: Splitter,
    top_k: int,
    documents: Sequence[Document],
    questions: Sequence[Question],
    encoder: Any,
    search: str = "meaning",
) -> np.ndarray:
    """(3, n): evidence and tokens sent for n questions, and the mean tokens of a chunk."""
    pieces = splitter(documents)
    texts, queries = [piece.text for piece in pieces], [question.text for question in questions]
    n_tokens = encoder.count_tokens(texts)
    if search == "words":
        scores = word_scores(texts, queries)
    else:
        made = [piece.vector for piece in pieces if piece.vector is not None]
        scores = encoder.encode_queries(queries) @ (np.stack(made) if made else encoder.encode(texts)).T
    ranks = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    evidence = [covered(q, [pieces[i] for i in row]) for q, row in zip(questions, ranks, strict=True)]
    return np.stack([evidence, n_tokens[ranks].sum(axis=1), np.full(len(queries), n_tokens.mean())])


COLUMNS = ("set", "app", "splitter", "evidence", "tokens", "mean chunk", "difference", "low", "high")


def table(rows: Sequence[dict[str, Any]]) -> str:
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * 3}{'---:|' * (len(COLUMNS) - 3)}"]
    for row in rows:
        cells = [row.get(name, "") for name in COLUMNS]
        texts = [
            f"{c:.3f}"
            if isinstance(c, float) and abs(c) <= 1
            else f"{c:,.0f}"
            if isinstance(c, float)
            else str(c)
            for c in cells
        ]
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines)


def means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The means over the sets."""
    kinds = dict.fromkeys((row["app"], row["splitter"]) for row in rows)
    found = []
    for app, splitter in kinds:
        of_kind = [row for row in rows if (row["app"], row["splitter"]) == (app, splitter)]
        mean: dict[str, Any] = {"set": f"mean of {len(of_kind)}", "app": app, "splitter": splitter}
        for name in ("evidence", "tokens", "mean chunk", "difference"):
            if name in of_kind[0]:
                mean[name] = float(np.mean([row[name] for row in of_kind]))
        if "low" in of_kind[0]:
            halves = [(row["high"] - row["low"]) / 2 for row in of_kind]
            half = float(np.linalg.norm(halves)) / len(of_kind)
            mean |= {"low": mean["difference"] - half, "high": mean["difference"] + half}
        found.append(mean)
    return found


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, SETS)
    record.add_encoder(parser)
    parser.add_argument("--characters", type=int, default=400_000, help="of a set's documents (%(default)s)")
    parser.add_argument("--in-context", action="store_true", help="also the vectors in context")
    parser.add_argument("--search", choices=("meaning", "words"), default="meaning")
    parser.add_argument("--sizes", default="0.92,1,1.08", help="factors (%(default)s)")
    parser.add_argument("--name", default="one-line", help="of the result (%(default)s)")
    parser.add_argument(
        "--option", action="append", default=[], help="of this library's splitters: name=value"
    )
    args = parser.parse_args()
    encoder = record.cached_encoder(args)
    options = {
        name: float(value) if "." in value else int(value)
        for name, value in (o.split("=") for o in args.option)
    }
    of_sizes = [
        apps(options, encoder if args.in_context else None, float(size)) for size in args.sizes.split(",")
    ]
    rows: list[dict[str, Any]] = []
    for name in args.sets.split(","):
        documents, questions = draw(name, args)
        groups = [q.doc_id or q.evidence[0].doc_id for q in questions]
        for app, splitters in of_sizes[0].items():
            base = None
            for splitter in splitters:
                runs = [
                    measure(found[app][splitter], int(app[-1]), documents, questions, encoder, args.search)
                    for found in of_sizes
                ]
                evidence, tokens, mean_chunk = np.mean(runs, axis=0)
                row = {"set": name, "app": app, "splitter": splitter, "questions": len(questions)}
                row |= {
                    "evidence": float(evidence.mean()),
                    "tokens": float(tokens.mean()),
                    "mean chunk": float(mean_chunk.mean()),
                    "by size": [round(float(run[0].mean()), 4) for run in runs],
                }
                if base is None:
                    base = evidence
                else:
                    gain = compare_paired(evidence, base, groups=groups).difference
                    row |= {"difference": gain.mean, "low": gain.low, "high": gain.high}
                rows.append(row)
                print(table([row]).splitlines()[-1], flush=True)
    made = record.made(__spec__.name, args)
    body = f"# One line changed\n\n{(__doc__ or '').split(chr(10) * 2)[2]}\n\n{table(means(rows) + rows)}"
    record.save("segmentation", args.name, made, body, {"rows": rows})


if __name__ == "__main__":
    main()
