"""A stock app before and after one line of the migration page: evidence and tokens that are sent.

    python -m benchmarks.adoption --data DIR [--sets squad,hotpotqa] [--sample 20] [--characters 150000]

Both frameworks with their own defaults: LlamaIndex SentenceSplitter() and similarity_top_k 2, LangChain
RecursiveCharacterTextSplitter() and k 4, a vector store with the default encoder, over the documents of a set
in seeded order up to --characters; and each line of docs/guides/migration.md that needs no further package,
over the chunks of the stock splitter and of ours. "top 10 and …" is the same app with the larger number that
the page says, and the part. The questions are about documents that no model of ours was trained on.

Evidence: share of a question's evidence characters that are sent, mean over questions. Tokens: sent for a
question, by the encoder's tokenizer; where a model answers, those of the first selection. Of stock: the
tokens in percent of those that the stock app needs for the same share of the evidence by a larger top k, up
to 30, interpolated; "-" if it never gets there. The model of the relevance filters is always right; it is
asked with the tokens in the last column. The difference of the evidence to the stock app has a 95 % interval,
paired by question, resampled by document.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.adoption.app import App, Piece, RememberingReranker, RightModel, covered
from benchmarks.adoption.langchain import langchain
from benchmarks.adoption.llamaindex import llamaindex
from benchmarks.questions import unseen
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.datasets import Question
from precise_rag.evaluation.measures.statistics import compare_paired
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.index import HybridIndex
from precise_rag.types import Document

SETS = "squad,fairytaleqa,covidqa,hotpotqa"
MODULE = "benchmarks.adoption"
FRAMEWORKS = (llamaindex, langchain)
NEAREST = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30)
"""The numbers that the stock app is measured with."""

COLUMNS = ("app", "chunks", "line", "evidence (%)", "tokens", "of stock (%)", "asked")


def held_out(name: str, args: Any) -> tuple[list[Document], list[Question]]:
    """Documents that nothing was trained on, up to --characters, and questions about them.

    name: of a development set, or of a part of it by the ids of its documents, as "xquad/de".
    """
    stem, _, part = name.partition("/")
    dataset = unseen(load_development_set(stem, args.data).with_evidence())
    if part:
        dataset = dataset.restrict([one.id for one in dataset.documents if f"/{part}/" in one.id])
    asked_about = {e.doc_id for q in dataset.questions for e in q.evidence}
    rng = np.random.default_rng(args.seed)
    documents, size = [], 0
    for place in rng.permutation(len(dataset.documents)).tolist():
        document = dataset.documents[place]
        if document.id in asked_about and (not documents or size + len(document.text) <= args.characters):
            documents.append(document)
            size += len(document.text)
    known = {document.id for document in documents}
    questions = [q for q in dataset.questions if all(e.doc_id in known for e in q.evidence)]
    chosen = rng.permutation(len(questions))[: args.sample]
    return documents, [questions[place] for place in chosen.tolist()]


def measure(
    app: App,
    questions: Sequence[Question],
    texts: Mapping[str, str],
    model: RightModel,
    count_tokens: Callable[[list[str]], Any],
) -> Iterator[dict[str, Any]]:
    """One row for each line, the stock app by its numbers of pieces first."""
    groups = [q.group for q in questions]

    def sent(ask: Callable[[str], list[Piece]]) -> tuple[list[float], list[int], list[int]]:
        evidence, tokens, asked = [], [], []
        for question in questions:
            model.about(question, texts)
            pieces = ask(question.text)
            evidence.append(covered(question, pieces))
            tokens.append(int(sum(count_tokens([p.text for p in pieces]))) if pieces else 0)
            asked.append(model.asked)
        return evidence, tokens, asked

    base: np.ndarray | None = None
    for k in NEAREST:
        evidence, tokens, _ = sent(lambda query, k=k: app.nearest(query, k))  # type: ignore[misc]
        yield {"app": app.name, "nearest": k, "evidence": evidence, "tokens": tokens}
    for line in app.lines:
        evidence, tokens, asked = sent(line.ask)
        row = {"app": app.name, "chunks": line.chunks, "line": line.code, "stock": line.is_stock}
        row |= {"evidence": evidence, "tokens": tokens}
        if "Relevance" in line.code:
            row["asked"] = float(np.mean(asked))
        if base is None:
            base = np.array(evidence)
        else:
            gain = compare_paired(np.array(evidence), base, groups=groups).difference
            row["difference"] = [gain.mean, gain.low, gain.high]
        yield row


def summary(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The means of each line over the questions of each set, and then over the sets."""
    names = dict.fromkeys(
        (row["app"], row.get("chunks", ""), row.get("line", row.get("nearest"))) for row in rows
    )
    found = []
    for app, chunks, line in names:
        own = [
            r
            for r in rows
            if (r["app"], r.get("chunks", ""), r.get("line", r.get("nearest"))) == (app, chunks, line)
        ]
        mean = {key: float(np.mean([np.mean(r[key]) for r in own])) for key in ("evidence", "tokens")}
        asked = [r["asked"] for r in own if "asked" in r]
        found.append(
            {"app": app, "chunks": chunks, "line": line, "stock": own[0].get("stock", True), **mean}
            | ({"asked": float(np.mean(asked))} if asked else {})
        )
    for row in found:
        nearest = [r for r in found if r["app"] == row["app"] and isinstance(r["line"], int)]
        needed = tokens_for(row["evidence"], nearest)
        row["of stock"] = row["tokens"] / needed if needed and row["tokens"] else None
    return found


def tokens_for(evidence: float, nearest: Sequence[Mapping[str, Any]]) -> float | None:
    """The tokens with which the stock app sends so much of the evidence; None if it never does."""
    shares, first = np.unique(
        np.maximum.accumulate([row["evidence"] for row in nearest]).round(6), return_index=True
    )
    if evidence > shares[-1] + 1e-6 or evidence <= 0:
        return None
    tokens = [nearest[place]["tokens"] for place in first]
    return float(np.interp(evidence, [0.0, *shares], [0.0, *tokens]))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The lines of a summary."""
    body = [
        [
            row["app"],
            row["chunks"] or "`" + _stock_chunks(rows, row["app"]).strip("`") + "`",
            f"top {row['line']}" if isinstance(row["line"], int) else row["line"],
            f"{100 * row['evidence']:.1f}",
            f"{row['tokens']:,.0f}",
            f"{100 * row['of stock']:.0f}" if row["of stock"] else "-",
            f"{row['asked']:,.0f}" if "asked" in row else "",
        ]
        for row in rows
    ]
    return format_markdown(COLUMNS, body)


def differences(rows: Sequence[Mapping[str, Any]]) -> str:
    """The lines of one set, with the difference of the evidence to the stock app."""
    body = []
    for row in rows:
        if "line" in row:
            mean, low, high = (100 * value for value in row.get("difference", (0.0, 0.0, 0.0)))
            difference = f"{mean:+.1f} ({low:+.1f} to {high:+.1f})" if "difference" in row else ""
            numbers = f"{100 * np.mean(row['evidence']):.1f}", f"{np.mean(row['tokens']):,.0f}"
            body.append([row["app"], row["chunks"], row["line"], *numbers, difference])
    return format_markdown((*COLUMNS[:5], "difference (points)"), body)


def _stock_chunks(rows: Sequence[Mapping[str, Any]], app: str) -> str:
    return next(str(row["chunks"]) for row in rows if row["app"] == app and row["chunks"])


def main() -> None:
    parser = record.parse_arguments(MODULE, __doc__, SETS, sample=20)
    parser.add_argument("--characters", type=int, default=150_000, help="of a set's documents (%(default)s)")
    args = parser.parse_args()
    encoder = record.cached_encoder(args)
    reranker, model = RememberingReranker(), RightModel()
    rows: list[dict[str, Any]] = []
    for name in args.sets.split(","):
        documents, questions = held_out(name, args)
        texts = {document.id: document.text for document in documents}
        index = HybridIndex.build(documents, encoder)
        for framework in FRAMEWORKS:
            app = framework(documents, index, encoder, reranker, model)
            for row in measure(app, questions, texts, model, encoder.count_tokens):
                rows.append({"set": name, **row})
                means = {key: round(float(np.mean(row[key])), 3) for key in ("evidence", "tokens")}
                print(
                    name,
                    row["app"],
                    row.get("chunks"),
                    row.get("line", row.get("nearest")),
                    means,
                    flush=True,
                )
    about = (__doc__ or "").split("\n\n", 2)[2].strip()
    parts = [f"# One line of the migration page\n\n{about}"]
    found = summary(rows)
    parts.append(f"## Mean of {args.sets.replace(',', ', ')}\n\n{table(found)}")
    for name in args.sets.split(","):
        own = [row for row in rows if row["set"] == name]
        parts.append(f"## {name}, {len(own[0]['evidence'])} questions\n\n{differences(own)}")
    data = {"summary": found, "rows": rows}
    record.save("adoption", "adoption", record.made(MODULE, args), "\n\n".join(parts), data)


if __name__ == "__main__":
    main()
