"""LlamaIndex LLMRerank: its cost, and the bounds of its quality.

    python -m benchmarks.peers.llm_rerank --data DIR
    python -m benchmarks.peers.llm_rerank --data DIR --llm MODEL [--base-url URL]    # your model

LLMRerank as it comes (its own prompt, ten chunks a call) over the 20 best chunks of 200 tokens. Without
your own model, two stand-ins answer over HTTP, through the same client: a judge that knows the evidence
and is never wrong, so that no model can do better with these chunks, and one that cannot tell chunks
apart, so that the search's order stays. Calls and tokens are counted as sent. Our path, which asks no
model, is measured beside them. Writes benchmarks/peers/results/llm-rerank-<date>.md and .json.
"""

import argparse
import re
import warnings
from collections.abc import Iterator
from typing import Any

from benchmarks import record
from benchmarks.compare import SETS, unseen
from benchmarks.compare_tables import mean_over_sets
from precise_rag.evaluation import BUDGETS, Dataset, load_development_set
from precise_rag.evaluation.peers.splitters import load_peer_splitter
from precise_rag.evaluation.report.tables import format_markdown
from precise_rag.evaluation.runs.evaluate import Outcome, evaluate
from precise_rag.evaluation.runs.plan import PipelineSettings, Plan
from precise_rag.llm import OpenAIChat
from precise_rag.protocols import LLM, Encoder
from tests.support.chat_server import ChatServer, says

CHUNKS: dict[str, Any] = {"split": {"name": "langchain-recursive", "chunk_size": 200}, "top_k": 20}
OURS: dict[str, Any] = {"index": {"kind": "hybrid"}, "rerank": "cascade", "redundancy": {}}
PLAIN = PipelineSettings(name="dense, 20 chunks of 200 tokens", **CHUNKS)
WHOLE = PipelineSettings(name="precise whole path", **OURS)
AS_IT_COMES = PipelineSettings(
    name="precise as it comes", **OURS, select={"min_score": 0.02, "min_keep": 3}, top_k=50
)
CUT = "Let's try this now:"
"""Where LLMRerank's prompt ends its example and begins with the documents."""


def main() -> None:
    parser = record.parse_arguments(__spec__.name, __doc__, SETS, sample=100)
    parser.add_argument("--llm", metavar="MODEL")
    parser.add_argument("--base-url")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    encoder = record.cached_encoder(args)
    datasets = [
        unseen(load_development_set(name, args.data).with_evidence()).sample(args.sample, args.seed)
        for name in args.sets.split(",")
    ]
    rows: dict[str, list[Outcome]] = {}
    for dataset in datasets:
        for name, llm in judges(dataset, encoder, args):
            asked = PipelineSettings(name=name, search="llamaindex-llm-rerank", **CHUNKS)
            plan = Plan((PLAIN, asked, WHOLE, AS_IT_COMES), PLAIN.name)
            (outcome,) = evaluate(plan, [dataset], encoder, args.work / "runs", seed=args.seed, llm=llm)
            rows.setdefault(name, []).append(outcome)
            print(dataset.name, name, outcome.failed or "", flush=True)
    save(rows, args)


def judges(dataset: Dataset, encoder: Encoder, args: argparse.Namespace) -> Iterator[tuple[str, LLM]]:
    """The model that the user names; or the two stand-ins."""
    if args.llm:
        yield f"LLMRerank by {args.llm}", OpenAIChat(args.llm, base_url=args.base_url)
        return
    known = evidence_shares(dataset, encoder)
    with ChatServer(lambda request: says(named(request, known), usage=None)) as server:
        llm = OpenAIChat("knows", base_url=server.url, api_key="none")
        yield "LLMRerank, a judge that is never wrong", llm
    with ChatServer(lambda request: says(named(request, None), usage=None)) as server:
        llm = OpenAIChat("cannot-tell", base_url=server.url, api_key="none")
        yield "LLMRerank, a judge that cannot tell", llm


def evidence_shares(dataset: Dataset, encoder: Encoder) -> dict[str, dict[str, float]]:
    """Chunks (their text without white space) that hold evidence, and their share of it, by question."""
    options = dict(CHUNKS["split"])
    split = load_peer_splitter(options.pop("name"), encoder, **options)
    units = {document.id: split(document) for document in dataset.documents}
    found: dict[str, dict[str, float]] = {}
    for question in dataset.questions:
        total = sum(place.end - place.start for place in question.evidence)
        shares: dict[str, float] = {}
        for place in question.evidence:
            for unit in units[place.doc_id]:
                shared = min(unit.end, place.end) - max(unit.start, place.start)
                if shared > 0:
                    key = visible(unit.text)
                    shares[key] = shares.get(key, 0.0) + shared / total
        found[visible(question.text)] = shares
    return found


def named(request: dict[str, Any], known: dict[str, dict[str, float]] | None) -> str:
    """A reply in LLMRerank's form: the documents that hold evidence, or all of them if `known` is None.

    The relevance is 2 to 10, by the share of the evidence.
    """
    shown, _, asked = request["messages"][-1]["content"].rpartition(CUT)[2].rpartition("\n\nQuestion: ")
    documents = re.split(r"(?:^|\n)Document \d+:\n", shown)[1:]
    shares = [0.4] * len(documents)
    if known is not None:
        wanted = known[visible(asked.rpartition("\n\nAnswer:")[0])]
        shares = [wanted.get(visible(text), 0.0) for text in documents]
    lines = [
        f"Doc: {n}, Relevance: {2 + round(8 * share)}" for n, share in enumerate(shares, start=1) if share
    ]
    return "\n".join(lines) or "None of them."


def visible(text: str) -> str:
    return "".join(text.split())


def save(rows: dict[str, list[Outcome]], args: argparse.Namespace) -> None:
    first = next(iter(rows.values()))
    lines = [(PLAIN.name, first), *((name, outcomes) for name, outcomes in rows.items())]
    lines += [(WHOLE.name, first), (AS_IT_COMES.name, first)]
    measures = [*(f"recall@{budget}" for budget in BUDGETS), "llm calls", "llm tokens", "tokens"]
    table = {
        name: {measure: round(mean_over_sets(outcomes, name, measure), 4) for measure in measures}
        for name, outcomes in lines
    }
    body = [
        [
            name,
            *(f"{100 * values[f'recall@{budget}']:.1f}" for budget in BUDGETS),
            f"{values['llm calls']:.1f}",
            f"{values['llm tokens']:,.0f}",
            f"{values['tokens']:,.0f}",
        ]
        for name, values in table.items()
    ]
    header = ["pipeline", *map(str, BUDGETS), "calls a question", "tokens asked", "tokens kept"]
    sets = ", ".join(outcome.dataset.name for outcome in first)
    text = [
        "# LlamaIndex LLMRerank",
        f"Recall of evidence (%) by tokens sent, mean over {sets}, and what ranking itself asks of a "
        "language model for one question.",
        __doc__.split("\n\n")[2].split(" Writes")[0].strip(),
        format_markdown(header, body),
    ]
    made = record.made(__spec__.name, args)
    record.save("peers", "llm-rerank", made, "\n\n".join(text), {"mean": table})


if __name__ == "__main__":
    main()
