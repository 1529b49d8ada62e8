"""A stock app before and after one line of the migration page: evidence and tokens that are sent.

    python -m benchmarks.adoption --data DIR [--sets squad,hotpotqa] [--sample 20] [--characters 150000]

Both frameworks with their own defaults: LlamaIndex SentenceSplitter() and similarity_top_k 2, LangChain
RecursiveCharacterTextSplitter() and k 4, a vector store with the default encoder, over the documents of a set
in seeded order up to --characters; and each line of docs/migration.md that needs no further package,
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
from benchmarks.adoption.app import App, RememberingReranker, RightModel
from benchmarks.adoption.langchain import langchain
from benchmarks.adoption.llamaindex import llamaindex
from benchmarks.questions import held_out
from benchmarks.sent import Piece, covered
from benchmarks.tables import percent, table
from precise_rag.evaluation import Interval, Question, compare_paired
from precise_rag.index import HybridIndex

SETS = "squad,fairytaleqa,covidqa,hotpotqa"
MODULE = "benchmarks.adoption"
FRAMEWORKS = (llamaindex, langchain)
NEAREST = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30)
"""The numbers that the stock app is measured with."""


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
    lines: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        lines.setdefault((row["app"], row.get("chunks", ""), row.get("line", row.get("nearest"))), []).append(
            row
        )
    found = []
    for (app, chunks, line), own in lines.items():
        mean = {key: float(np.mean([np.mean(r[key]) for r in own])) for key in ("evidence", "tokens")}
        asked = {"asked": float(np.mean([r["asked"] for r in own]))} if "asked" in own[0] else {}
        stock = own[0].get("stock", True)
        found.append({"app": app, "chunks": chunks, "line": line, "stock": stock, **mean, **asked})
    for one in found:
        nearest = [r for r in found if r["app"] == one["app"] and isinstance(r["line"], int)]
        needed = tokens_for(one["evidence"], nearest)
        one["of stock"] = one["tokens"] / needed if needed and one["tokens"] else None
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


def shown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The lines of a summary as a table."""
    chunks = {row["app"]: row["chunks"] for row in reversed(rows) if "Splitter()" in row["chunks"]}
    return table(
        [
            {
                "app": row["app"],
                "chunks": row["chunks"] or chunks[row["app"]],
                "line": f"top {row['line']}" if isinstance(row["line"], int) else row["line"],
                "evidence (%)": 100 * row["evidence"],
                "tokens": round(row["tokens"]),
                "of stock (%)": round(100 * row["of stock"]) if row["of stock"] else "-",
                "asked": round(row["asked"]) if "asked" in row else "",
            }
            for row in rows
        ]
    )


def differences(rows: Sequence[Mapping[str, Any]]) -> str:
    """The lines of one set, with the difference of the evidence to the stock app."""
    return table(
        [
            {
                **{key: row[key] for key in ("app", "chunks", "line")},
                "evidence (%)": 100 * np.mean(row["evidence"]),
                "tokens": round(np.mean(row["tokens"])),
                "difference (points)": percent(Interval(*row["difference"])) if "difference" in row else "",
            }
            for row in rows
            if "line" in row
        ]
    )


def main() -> None:
    parser = record.parse_arguments(MODULE, __doc__, SETS, sample=20)
    record.add_characters(parser, 150_000)
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
                print(name, row["app"], row.get("chunks"), row.get("line"), means, flush=True)
    found = summary(rows)
    parts = ["# One line of the migration page", record.about(__doc__)]
    parts.append(f"## Mean of {args.sets.replace(',', ', ')}\n\n{shown(found)}")
    for name in args.sets.split(","):
        own = [row for row in rows if row["set"] == name]
        parts.append(f"## {name}, {len(own[0]['evidence'])} questions\n\n{differences(own)}")
    record.save("adoption", record.made(MODULE, args), "\n\n".join(parts))


if __name__ == "__main__":
    main()
