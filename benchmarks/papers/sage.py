"""SAGE, Tables II, III, IV, V, VII and XI: retrieval with and without SAGE; answers with a model you name.

    python -m benchmarks.papers.sage --data DIR                                  # evidence and tokens
    python -m benchmarks.papers.sage --data DIR --sets quality,qasper --llm gpt-4o-mini

What differs from the paper: NarrativeQA is not at hand, FairytaleQA stands in for it (short stories,
sections as evidence); QuALITY and QASPER are the small L-Eval selections, which mark no evidence, so
that without a language model only tokens can be given for them. SBERT is all-MiniLM-L6-v2, the
reranker is the packaged one. Pipelines with feedback run only with --llm.
"""

from pathlib import Path

from benchmarks.papers.record import cached_encoder, parse_arguments, save
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.answering import answer_questions
from precise_rag.evaluation.evaluate import Outcome, evaluate
from precise_rag.evaluation.pipelines import load_plan
from precise_rag.evaluation.tables import answer_cells, answer_columns, format_markdown
from precise_rag.llm import OpenAIChat

PAPER = {
    "SBERT without SAGE": ("27.3", "72.5", "37.6", "1.00"),
    "SBERT with SAGE": ("27.6", "73.1", "40.2", "0.74"),
    "BM25 without SAGE": ("22.1", "72.2", "37.3", "1.00"),
    "BM25 with SAGE": ("25.9", "75.0", "40.0", "0.75"),
    "SBERT with segmentation only": ("+4.5 %", "", "", ""),
    "SBERT with selection only": ("+2.5 %", "", "", ""),
    "SBERT with feedback only": ("+7.5 %", "", "", ""),
    "SBERT with SAGE and feedback": ("+11.3 %", "", "", ""),
}
"""ROUGE on NarrativeQA (II; IV as a gain over naive RAG), accuracy on QuALITY and F1 on QASPER (III),
all GPT-4o-mini, and tokens against the same retriever without SAGE (XI)."""


def main() -> None:
    parser = parse_arguments(__doc__, "fairytaleqa,squad,nq,quality,qasper")
    parser.add_argument("--llm", help="an OpenAI-compatible chat model that answers the questions")
    parser.add_argument("--base-url")
    args = parser.parse_args()
    plan = load_plan(Path(__file__).with_name("sage.toml"))
    if not args.llm:
        plan = plan._replace(pipelines=tuple(p for p in plan.pipelines if p.feedback is None))
    datasets = [
        load_development_set(name, args.data).measurable().sample(args.sample, args.seed)
        for name in args.sets.split(",")
    ]
    outcomes = []
    for outcome in evaluate(plan, datasets, cached_encoder(args), args.work / "runs", show_progress=True):
        if args.llm:
            outcome = answer_questions(outcome, OpenAIChat(args.llm, base_url=args.base_url))
        outcomes.append(outcome)
    save(
        "sage",
        args,
        "\n\n".join(["# SAGE: with and without", __doc__.split("\n\n", 2)[2], *map(table, outcomes)]),
        {"results": [outcome.to_dict() for outcome in outcomes]},
    )


def table(outcome: Outcome) -> str:
    """Ours, with the paper's figures beside them."""
    plain = {row.name.split()[0]: row.means["tokens"].mean for row in outcome.rows if "without" in row.name}
    body = []
    for row in outcome.rows:
        tokens = row.means["tokens"].mean
        evidence = [
            f"{100 * row.means[name].mean:.1f}" if name in row.means else "" for name in ("recall", "iou")
        ]
        per_1000 = "" if row.recall_per_1000_tokens is None else f"{100 * row.recall_per_1000_tokens:.1f}"
        ours = [row.name, *evidence, f"{tokens:,.0f}", f"{tokens / plain[row.name.split()[0]]:.2f}", per_1000]
        body.append([*ours, *PAPER[row.name]])
    header = ["pipeline", "recall", "IoU", "tokens", "tokens/without", "recall/1k tokens"]
    paper = ["paper: ROUGE", "paper: QuALITY", "paper: QASPER", "paper: tokens/without"]
    parts = [f"## {outcome.dataset.name}", format_markdown([*header, *paper], body)]
    if outcome.answers:
        parts += [
            f"Answers by {outcome.answers[0].model}:",
            format_markdown(answer_columns(outcome.answers[0]), list(map(answer_cells, outcome.answers))),
        ]
    return "\n\n".join(parts)


if __name__ == "__main__":
    main()
