"""Compose docs/measurements.md from the newest results, so that no figure is typed by hand.

    python -m benchmarks.measurements             # write docs/measurements.md
    python -m benchmarks.measurements --readme    # print the table for README.md
    python -m benchmarks.measurements --check     # exit 1 if the page or README's table is out of date

The page shows the means; the result that each section links has every set and interval. README.md takes its
table between the lines <!-- measurements --> and <!-- /measurements -->.
"""

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.results import FULL, Result, Table, newest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "measurements.md"
README = ROOT / "README.md"
OPENING, CLOSING = "<!-- measurements -->", "<!-- /measurements -->"

OURS = {
    "recursive 200, BM25 + dense": "recursive splitter, BM25 + dense",
    "precise Hybrid": "precise-rag: `HybridIndex`",
    "precise whole path": "precise-rag: the whole path",
    "precise as it comes": "precise-rag: `PreciseRAG` as it comes",
}
"""Pipelines of README's table beside the best of LangChain and LlamaIndex, and their labels."""

_HEAD = f"""\
# Measurements

<!-- Written by `python -m benchmarks.measurements`; change the results or that module, not this page. -->

Every figure on this page comes from a file in `benchmarks/*/results/`, which its section links: there are all
sets, with intervals, versions and seeds. The [list of benchmarks]({FULL}/README.md) has the
questions that are not here: what growing evidence gains, hostile documents, what an index costs to build,
questions without an answer, ranks and distractors, and the papers' own tables. `DIR` is the folder of the
question sets that the [evaluation guide](guides/evaluation.md#benchmarks) describes; install with
`pip install -e '.[all,peers]' --group test` first. All runs were on CPUs.

*Recall* is the share (%) of a question's evidence, in characters, within the tokens that are sent to the
language model; columns headed by a number give it for so many tokens."""

_LINES = re.compile(r"as_retriever|Evidence|^`PreciseRetriever`$")
"""The lines of a stock application that the page shows."""

_LEFT_OUT = re.compile(r"recursive 100|recursive 400|precise segments$|plain dense, (paragraphs|100)|, texts")
"""Rows of other tables that the page leaves to the results."""

_STOCK = ("`SentenceSplitter()`", "`RecursiveCharacterTextSplitter()`", "documents")
"""The chunks under these lines."""


def compose() -> str:
    """The whole page."""
    return (
        "\n\n".join([_HEAD, *_about_context(), *_about_search(), *_about_models(), *_about_papers()]) + "\n"
    )


def _about_context() -> list[str]:
    """What is sent, against other libraries and part by part."""
    peers, few = newest("peers", "peers"), newest("peers", "peers-few")
    lines, parts = newest("adoption", "adoption"), newest("ablation", "ablation")
    prompts, enough = newest("adoption", "prompts"), newest("evidence", "enough")
    nodes = newest("evidence", "nodes-default")
    steps = parts.table("What each part")
    return [
        _section(
            "Against what people use",
            "How much of the evidence arrives with other libraries and with ours, the encoder being the "
            "same? + or -: differs significantly from LangChain's splitter with 200 tokens. Kept: all that "
            "a pipeline keeps; ms: one question whose vector is known. *As it comes* is what "
            f"`PreciseRAG.from_documents(documents).retrieve(question)` returns; {_over(peers)}.",
            peers,
            peers.table("Mean over").only(_is_shown),
        ),
        "A few of them again, with the default path as it is now: the table of the "
        f"[front page](https://github.com/precise-rag/precise-rag#what-it-buys), {_over(few)}. {few.source}",
        _section(
            "One line of a stock application",
            "What does an application send after one line of the [migration page](guides/migration.md) "
            "was changed? Of stock: the tokens in percent of those with which the stock application "
            "sends as much of the evidence, by a larger top k. The full result has the other parts, too.",
            lines,
            lines.table("Mean of").only(
                lambda row: row[1] in _STOCK and _LINES.search(row[2]),
                "app, chunks, line, evidence (%), tokens, of stock (%)",
            ),
        ),
        f"What `EvidencePostprocessor` and `EvidenceCompressor` leave of stock chunks. {nodes.source}\n\n"
        + str(nodes.table().only(lambda row: ":" not in row[0])),
        _section(
            "The prompt as the framework writes it",
            "What does a model read over real documentation, with a stock application and with ours? Prompt: "
            "questions whose answer is in it; one piece, first: in one of its pieces, in the first one. "
            "Tokens: as OpenAI counts them. [What a model reads](guides/reading.md) shows one.",
            prompts,
            prompts.table("documentation"),
        ),
        _section(
            "Enough, not more",
            "What does the default selection gain over a fixed budget of the same mean tokens: one for all "
            "sets; in each set the tokens of the selection there; in each set its own best budget, chosen "
            "on other questions?",
            enough,
            enough.table("", 1),
        ),
        _section(
            "What each part buys",
            "How many points of recall does a part gain when it is switched on and the rest stays? ± is "
            "half of the 95 % interval; bold: significant. The last columns are what it costs: tokens of"
            f" all that is kept, and milliseconds a question; {_over(parts)}.",
            parts,
            steps.only(columns=", ".join(name for name in steps.header if "@" not in name)),
        ),
    ]


def _about_search() -> list[str]:
    """Searches, indexes and chunks."""
    recall, checks = newest("retrieval", "recall"), newest("retrieval", "recall-checks-plain-hybrid")
    scale, chunks = newest("retrieval", "scale-1000000"), newest("segmentation", "segmentation")
    return [
        _section(
            "One default against the best plain searches",
            "Does `HybridIndex`, unchanged, reach the plain search that is best on a set in hindsight: "
            "dense, BM25 or both, over chunks of two sizes? Recall with 200 / 400 / 800 / 1600 tokens; "
            "bold: significant. Plain BM25 finds no words in Chinese.",
            recall,
            recall.table(),
        ),
        _section(
            "Questions that no setting was chosen on",
            "The same. Headings ask for their section, and the title of an article for its first paragraph.",
            checks,
            checks.table(),
        ),
        _section(
            "A million sentences",
            "How fast and exact are the indexes at a large size? Building is without encoding; latency "
            "is one query whose vector is known; recall@10 is against the same search in float32. IVF "
            "and HNSW are faiss.",
            scale,
            scale.table().only(
                lambda row: not re.search("float16|PQ48|nprobe=64|context", row[0]),
                "kind, build s, vectors MB, p50 ms, p95 ms, recall@10",
            ),
        ),
        _section(
            "Chunks",
            "Which chunks serve plain dense search best? + or -: differs significantly from LangChain's "
            "recursive splitter with 200 tokens. How well the models find the boundaries that authors "
            "set is in the cards of [`small`](models/segmentation-small.md) and "
            "[`sage-minilm`](models/segmentation-sage-minilm.md).",
            chunks,
            chunks.table("Mean over").only(_is_shown),
        ),
    ]


def _about_models() -> list[str]:
    """Rerankers, results of tools, and speed."""
    rerank, latency = newest("reranking", "measure"), newest("peers", "latency")
    tools, service = newest("agents", "tool-results"), newest("service", "clients")
    return [
        _section(
            "Reranking",
            "How well do rerankers order the same candidates, how good are their probabilities (expected"
            " calibration error), and what do they cost (CPU milliseconds a question)? The cards of the "
            "[packaged reranker](models/reranker.md) and the [cascade](models/reranker-cascade.md) say "
            "what they were trained on, and what happens in other languages.",
            rerank,
            _rerankers(rerank.data).only(_is_shown),
        ),
        _section(
            "Long results of an agent's tools",
            "What do `prune`, and the [parts for agents](guides/agents.md) that call it, leave of a tool's "
            "result, and is the answer in it? Of the development sets, *answered* is the share of the "
            "evidence; *beginning* is as many tokens from the start of the result. Logs and JSON are made "
            "up: asked in the words of the answer, and in others.",
            tools,
            tools.table("At most 1,000 tokens"),
        ),
        _section(
            "Fifty clients at once",
            "What does `precise serve --rest` do when 50 clients ask without a pause? *Lost*: requests "
            "without the reply that the same request gets alone. The machine did other work at the time.",
            service,
            service.table(),
        ),
        _section(
            "Speed on a CPU",
            "How much does a question cost, from its text to the selected context? An index of 5,000 "
            "sentences; callers are threads that ask without a pause.",
            latency,
            latency.table().only(lambda row: "pauses" not in row[0] and "passages" not in row[0]),
        ),
    ]


def _about_papers() -> list[str]:
    """The presets of the papers."""
    answers = newest("papers", "answers")
    return [
        _section(
            "Answers by preset and part",
            "Of how many questions does an accepted answer stand in what a preset sends, and what does each "
            "part of the default path do to that? The [paper map](paper_map.md) says what each preset is. "
            "The full result has questions without an answer, too.",
            answers,
            answers.table("Mean over"),
        ),
    ]


def _is_shown(row: list[str]) -> bool:
    return not _LEFT_OUT.search(row[0])


def _over(result: Result) -> str:
    """The sets of the first table of means."""
    return re.search(r"^## (M)(ean over .*)$", result.page, re.MULTILINE).expand(r"m\2")


def _section(title: str, text: str, result: Result, table: Table) -> str:
    return f"## {title}\n\n{text} {result.source}\n\n{table}"


def _rerankers(data: Mapping[str, Any]) -> Table:
    header = ["reranker", "candidates", "nDCG@10, sets not trained on", "nDCG@10, all sets", "ECE", "ms"]
    rows = []
    for one in data["reliability"]:
        same = [r for r in data["rows"] if (r["ranker"], r["kind"]) == (one["ranker"], one["kind"])]
        ndcg = [r["nDCG@10"] for name in ("unseen sets", "all") for r in same if r["set"] == name]
        ms = mean(r["ms"] for r in same if r["questions"])
        figures = [f"{value:.3f}" for value in (*ndcg, one["ECE"])]
        rows.append([one["ranker"], one["kind"], *figures, f"{ms:.1f}"])
    return Table(header, rows).only(lambda row: row[1] in ("sentences", "passages"))


def readme_table() -> str:
    """The best pipelines of LangChain and LlamaIndex, plain hybrid search, and ours, for README.md.

    Which are the best says the run of all pipelines; the figures are those of the newest run of these few.
    """
    every, few = _fullest(newest("peers", "peers")), _fullest(newest("peers", "peers-few"))
    shown = few.only(columns=", ".join([*few.header[:5], "kept tokens"]))
    cells = {row[0]: [re.sub(r" [+-]$", "", cell) for cell in row[1:]] for row in shown.rows}

    def recall(row: list[str]) -> float:
        return sum(float(cell.strip("*+- ")) for cell in row[1:5])

    libraries = ("LangChain", "LlamaIndex")
    best = [max((r for r in every.rows if r[0].startswith(library)), key=recall)[0] for library in libraries]
    labels = {name: f"{name} (best of {library})" for name, library in zip(best, libraries, strict=True)}
    rows = [[label, *cells[name]] for name, label in {**labels, **OURS}.items()]
    return str(Table(shown.header, rows))


def _fullest(result: Result) -> Table:
    """The table of means with most pipelines."""
    headings = re.findall(r"^## (Mean over .*\n)", result.page, re.MULTILINE)
    return max((result.table(heading) for heading in headings), key=lambda table: len(table.rows))


def out_of_date() -> list[str]:
    """The files that differ from what the results give, each with what to do."""
    found = []
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != compose():
        found.append(f"{PAGE.relative_to(ROOT)} is out of date; run python -m benchmarks.measurements")
    _, marked, rest = README.read_text(encoding="utf-8").partition(OPENING)
    if marked and rest.partition(CLOSING)[0].strip() != readme_table():
        found.append(
            "README.md is out of date; put in what python -m benchmarks.measurements --readme prints"
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.measurements", description=__doc__.splitlines()[0]
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="exit 1 if the page or README.md is out of date")
    what.add_argument("--readme", action="store_true", help="print the table for README.md")
    args = parser.parse_args()
    if args.readme:
        print(readme_table())
    elif args.check:
        found = out_of_date()
        print("\n".join(found) or "up to date")
        return int(bool(found))
    else:
        PAGE.write_text(compose(), encoding="utf-8")
        print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
