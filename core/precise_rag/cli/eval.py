"""`precise eval`: compare pipelines on documents and questions."""

import argparse
import json
import sys
from pathlib import Path

from precise_rag.cli.output import Subparsers, print_json
from precise_rag.documents import read_documents
from precise_rag.encoders import DEFAULT_ENCODER, CachedEncoder, load_encoder
from precise_rag.errors import InputError
from precise_rag.evaluation.datasets import Dataset, load_dataset, load_development_set
from precise_rag.evaluation.measures.answers import METRICS
from precise_rag.evaluation.measures.evidence import BUDGETS
from precise_rag.evaluation.questions import make_questions, to_record
from precise_rag.evaluation.report.page import render_report
from precise_rag.evaluation.report.tables import format_answers, format_table
from precise_rag.evaluation.runs.answering import answer_questions
from precise_rag.evaluation.runs.evaluate import Outcome, circumstances, evaluate
from precise_rag.evaluation.runs.pipelines import DEFAULT_PLAN, load_plan
from precise_rag.llm import OpenAIChat

_EPILOG = """examples:
  precise eval --documents docs/ --questions questions.jsonl
  precise eval --documents docs/ --make-questions 100 --llm gpt-4o-mini
  precise eval --sets squad,fairytaleqa --data data/ --sample 200 --pipelines mine.toml
"""


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "eval",
        help="compare pipelines on documents and questions",
        description="Compare named pipelines: evidence at token budgets, rankings, tokens, seconds, answers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    data = parser.add_argument_group("data")
    data.add_argument("--documents", nargs="+", metavar="PATH", help="documents, as for `precise index`")
    data.add_argument("--questions", metavar="FILE", help=".jsonl(.gz) or .csv: question, answers, evidence")
    data.add_argument("--make-questions", type=int, metavar="N", help="have the LLM write N questions first")
    data.add_argument("--sets", metavar="NAMES", help="development sets by name, separated by commas")
    data.add_argument("--data", metavar="DIR", help="folder of the development sets (default: PRECISE_DATA)")
    data.add_argument("--sample", type=int, metavar="N", help="at most N questions a set, drawn by --seed")
    how = parser.add_argument_group("pipelines")
    how.add_argument("--pipelines", metavar="TOML", help="pipelines to compare (default: stock and ours)")
    how.add_argument(
        "--encoder", default=DEFAULT_ENCODER, help="encoder of all pipelines (default: %(default)s)"
    )
    how.add_argument("--device", help="cpu, cuda, … (default: the best there is)")
    how.add_argument(
        "--budgets",
        type=_budgets,
        default=BUDGETS,
        metavar="N,N",
        help="tokens sent (default: 200,400,800,1600)",
    )
    how.add_argument("--seed", type=int, default=0, help="for samples and intervals (default: %(default)s)")
    how.add_argument("--llm", metavar="MODEL", help="also answer the questions with this chat model")
    how.add_argument("--base-url", help="server of the chat model (default: OPENAI_BASE_URL, or OpenAI)")
    how.add_argument(
        "--metrics",
        type=_metrics,
        default=("EM", "F1", "ROUGE-L"),
        metavar="NAMES",
        help=f"of answers, separated by commas: {', '.join(METRICS)} (default: EM,F1,ROUGE-L)",
    )
    how.add_argument("--prices", metavar="TOML", help="prices of models, over the packaged table")
    parser.add_argument("--out", type=Path, default=Path("evaluation"), help="folder (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="the results as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run what is not yet in the folder, then write results.json and report.html there."""
    plan = load_plan(args.pipelines or DEFAULT_PLAN)
    llm = OpenAIChat(args.llm, base_url=args.base_url) if args.llm else None
    datasets = _datasets(args, llm)
    encoder = CachedEncoder(load_encoder(args.encoder, device=args.device), args.out / "vectors.sqlite")
    outcomes = []
    for outcome in evaluate(
        plan,
        datasets,
        encoder,
        args.out / "runs",
        budgets=args.budgets,
        seed=args.seed,
        llm=llm,
        show_progress=not args.json,
    ):
        if llm is not None:
            outcome = answer_questions(
                outcome, llm, metrics=args.metrics, prices=args.prices, show_progress=not args.json
            )
        outcomes.append(outcome)
        for name, reason in outcome.failed.items():
            print(f"precise: warning: {name} left out: {reason}", file=sys.stderr)
        if not args.json:
            print(f"\n{_headline(outcome)}")
            print(format_table(outcome.rows))
            if outcome.answers:
                print(format_answers(outcome.answers))
    made = circumstances(args.seed)
    results = {"made": made, "results": [outcome.to_dict() for outcome in outcomes]}
    (args.out / "results.json").write_text(
        json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
    )
    (args.out / "report.html").write_text(render_report(outcomes, made), encoding="utf-8")
    if args.json:
        print_json(results)
    else:
        print(
            f"\n{args.out / 'report.html'}: curves, cuts, questions won and lost; {args.out / 'results.json'}"
        )
    return 0


def _headline(outcome: Outcome) -> str:
    """The set, and how many questions could be used."""
    facts = outcome.to_dict()
    left_out = [
        f"{count} {why}"
        for count, why in (
            (facts["without_evidence"], "without evidence"),
            (facts["evidence_not_found"], "whose evidence is not in the documents"),
        )
        if count
    ]
    note = f" (left out: {', '.join(left_out)})" if left_out else ""
    if not any(question.evidence for question in outcome.dataset.questions):
        note += '; no question has "evidence", for instance a quotation: recall and ranks are not measured'
    return f"{outcome.dataset.name}: {facts['documents']:,} documents, {facts['questions']} questions{note}"


def _datasets(args: argparse.Namespace, llm: OpenAIChat | None) -> list[Dataset]:
    args.out.mkdir(parents=True, exist_ok=True)
    if args.sets:
        found = [load_development_set(name, args.data) for name in args.sets.split(",")]
        return [dataset.measurable().sample(args.sample, args.seed) for dataset in found]
    if not args.documents:
        raise InputError("nothing to evaluate on; give --documents with --questions, or --sets")
    questions = Path(args.questions) if args.questions else args.out / "questions.jsonl"
    if args.make_questions and not questions.exists():
        _write_questions(args, llm, questions)
    elif not args.questions and not args.make_questions:
        raise InputError("no questions; give --questions FILE, or --make-questions N with --llm MODEL")
    return [load_dataset(args.documents, questions).measurable().sample(args.sample, args.seed)]


def _write_questions(args: argparse.Namespace, llm: OpenAIChat | None, path: Path) -> None:
    if llm is None:
        raise InputError("--make-questions needs a chat model to write them; add --llm MODEL")
    made = make_questions(
        list(read_documents(*args.documents)),
        llm,
        args.make_questions,
        seed=args.seed,
        show_progress=not args.json,
    )
    if not made.questions:
        raise InputError(f"{llm.name} made no question whose evidence can be found; dropped: {made.dropped}")
    lines = (json.dumps(to_record(question), ensure_ascii=False) for question in made.questions)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    dropped = ", ".join(f"{count} {why}" for why, count in made.dropped.items()) or "none"
    print(f"{path}: {len(made.questions)} questions; dropped: {dropped}", file=sys.stderr)


def _budgets(text: str) -> tuple[int, ...]:
    budgets = tuple(sorted(int(part) for part in text.split(",")))
    if not budgets or budgets[0] < 1:
        raise argparse.ArgumentTypeError("expected token counts of at least 1, separated by commas")
    return budgets


def _metrics(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if unknown := [name for name in names if name not in METRICS]:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(METRICS)}")
    return names
