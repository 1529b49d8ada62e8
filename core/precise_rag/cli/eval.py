"""`precise eval`: compare pipelines on documents and questions."""

import argparse
import json
import sqlite3
from pathlib import Path

from precise_rag.cli.given_documents import add_reading_options, path_argument
from precise_rag.cli.output import (
    Subparsers,
    check_writable,
    flush,
    is_terminal,
    make_folder,
    print_json,
    show,
    warn,
    write_file,
)
from precise_rag.documents import read_documents
from precise_rag.encoders import DEFAULT_ENCODER, CachedEncoder, load_encoder
from precise_rag.errors import InputError
from precise_rag.evaluation import (
    BUDGETS,
    METRICS,
    Dataset,
    Outcome,
    answer_questions,
    circumstances,
    evaluate,
    load_dataset,
    load_development_set,
    load_plan,
    render_report,
)
from precise_rag.evaluation.questions import make_questions, to_record
from precise_rag.evaluation.report.tables import format_answers, format_table
from precise_rag.evaluation.runs.plan import DEFAULT_PLAN
from precise_rag.llm import OpenAIChat

_EPILOG = """examples:
  precise eval --documents docs/ --questions questions.jsonl
  precise eval --questions beir/scifact/
  precise eval --documents docs/ --make-questions 100 --llm gpt-4o-mini
  precise eval --sets squad,fairytaleqa --data data/ --sample 200 --pipelines mine.toml
"""


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "eval",
        help="compare pipelines on documents and questions",
        description="Compare retrieval pipelines on documents and questions. Writes report.html and\n"
        "results.json to the --out folder; an interrupted command continues where it stopped.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--documents",
        type=path_argument,
        nargs="+",
        metavar="PATH",
        help="files or folders, as for `precise index`",
    )
    add_reading_options(data)
    data.add_argument(
        "--questions",
        type=path_argument,
        metavar="PATH",
        help=".jsonl, .jsonl.gz or .csv file: question, answers, evidence; or a dataset of BEIR (a folder), "
        "ragas, LlamaIndex or LangSmith, which may bring its documents",
    )
    data.add_argument(
        "--make-questions", type=int, metavar="N", help="let the --llm model write N questions first"
    )
    data.add_argument(
        "--sets", metavar="NAMES", help="development sets, separated by commas, instead of --documents"
    )
    data.add_argument(
        "--data",
        type=path_argument,
        metavar="DIR",
        help="folder of the development sets (default: PRECISE_DATA)",
    )
    data.add_argument(
        "--sample", type=int, metavar="N", help="at most N questions per set, drawn with --seed"
    )
    how = parser.add_argument_group("pipelines")
    how.add_argument(
        "--pipelines",
        type=path_argument,
        metavar="TOML",
        help="plan file (default: LangChain, LlamaIndex and this library)",
    )
    how.add_argument(
        "--encoder",
        metavar="NAME",
        default=DEFAULT_ENCODER,
        help="encoder of all pipelines (default: %(default)s)",
    )
    how.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")
    how.add_argument(
        "--budgets",
        type=_budgets,
        default=BUDGETS,
        metavar="N,N",
        help="token budgets, separated by commas (default: 200,400,800,1600)",
    )
    how.add_argument(
        "--seed",
        type=int,
        metavar="N",
        default=0,
        help="seed of samples and intervals (default: %(default)s)",
    )
    how.add_argument("--llm", metavar="MODEL", help="chat model that also answers the questions")
    how.add_argument(
        "--base-url", metavar="URL", help="server of the chat model (default: OPENAI_BASE_URL, or OpenAI)"
    )
    how.add_argument(
        "--metrics",
        type=_metrics,
        default=("EM", "F1", "ROUGE-L"),
        metavar="NAMES",
        help=f"metrics of answers, separated by commas, of {', '.join(METRICS)} (default: EM,F1,ROUGE-L)",
    )
    how.add_argument(
        "--prices", type=path_argument, metavar="TOML", help="price table to lay over the packaged one"
    )
    parser.add_argument(
        "--out",
        type=path_argument,
        metavar="DIR",
        default=Path("evaluation"),
        help="folder of all results (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the pipelines, then write results.json and report.html."""
    if args.seed < 0:
        raise InputError(f"--seed must be at least 0, got {args.seed}")
    plan = load_plan(args.pipelines or DEFAULT_PLAN)
    make_folder(args.out)
    report, results_file = args.out / "report.html", args.out / "results.json"
    for path in (report, results_file):
        check_writable(path)
    llm = OpenAIChat(args.llm, base_url=args.base_url) if args.llm else None
    datasets = _datasets(args, llm)
    encoder = _cached(args)
    outcomes = []
    for outcome in evaluate(
        plan,
        datasets,
        encoder,
        args.out / "runs",
        budgets=args.budgets,
        seed=args.seed,
        llm=llm,
        traces=True,
        show_progress=is_terminal("stderr"),
    ):
        if llm is not None:
            outcome = answer_questions(
                outcome, llm, metrics=args.metrics, prices=args.prices, show_progress=is_terminal("stderr")
            )
        outcomes.append(outcome)
        for name, reason in outcome.failed.items():
            warn(f"warning: {name} left out: {reason}")
        if not args.json:
            show(f"\n{_headline(outcome)}")
            show(format_table(outcome.rows))
            if outcome.answers:
                show(format_answers(outcome.answers))
    made = circumstances(args.seed)
    results = {"made": made, "results": [outcome.to_dict() for outcome in outcomes]}
    write_file(results_file, json.dumps(results, indent=1, ensure_ascii=False))
    write_file(report, render_report(outcomes, made, args.out))
    if args.json:
        print_json(results)
    else:
        show(f"\nwrote {report} and {results_file}")
    return 0


def _cached(args: argparse.Namespace) -> CachedEncoder:
    path = args.out / "vectors.sqlite"
    try:
        return CachedEncoder(load_encoder(args.encoder, device=args.device), path)
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be used as a cache of vectors: {error}; delete it") from error


def _headline(outcome: Outcome) -> str:
    """The name of the dataset, and how many documents and questions were used."""
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
        note += '; no question has "evidence", so recall and ranks are not measured'
    if not note.endswith("not measured") and not outcome.answers:
        note += "; evidence is found by its place, so no model judges"
    return f"{outcome.dataset.name}: {facts['documents']:,} documents, {facts['questions']} questions{note}"


def _datasets(args: argparse.Namespace, llm: OpenAIChat | None) -> list[Dataset]:
    if args.sets:
        datasets = [load_development_set(name, args.data) for name in args.sets.split(",")]
        return [dataset.measurable().sample(args.sample, args.seed) for dataset in datasets]
    if not args.documents and not args.questions:
        raise InputError("nothing to evaluate; pass --documents with --questions, or --sets")
    if not args.documents and args.make_questions:
        raise InputError("--make-questions reads documents; pass --documents")
    questions = Path(args.questions) if args.questions else args.out / "questions.jsonl"
    if args.make_questions and not questions.exists():
        _write_questions(args, llm, questions)
    elif not args.questions and not args.make_questions:
        raise InputError("no questions; pass --questions FILE, or --make-questions N with --llm MODEL")
    dataset = load_dataset(
        args.documents or None, questions, follow_links=args.follow_links, max_bytes=args.max_bytes
    )
    return [dataset.measurable().sample(args.sample, args.seed)]


def _write_questions(args: argparse.Namespace, llm: OpenAIChat | None, path: Path) -> None:
    if llm is None:
        raise InputError("--make-questions needs a chat model; add --llm MODEL")
    check_writable(path)
    documents = read_documents(
        *args.documents, follow_links=args.follow_links, max_bytes=args.max_bytes, own_ids=True
    )
    made = make_questions(
        list(documents),
        llm,
        args.make_questions,
        seed=args.seed,
        show_progress=is_terminal("stderr"),
    )
    if not made.questions:
        raise InputError(
            f"{llm.name} wrote no question with evidence in the documents; dropped: {_counts(made.dropped)}"
        )
    records = [to_record(question) for question in made.questions]
    try:
        write_file(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    except InputError:  # they were paid for
        for record in records:
            print_json(record)
        flush()
        raise
    warn(f"{path}: {len(records)} questions; dropped: {_counts(made.dropped)}")


def _counts(dropped: dict[str, int]) -> str:
    return ", ".join(f"{count} {why}" for why, count in dropped.items()) or "none"


def _budgets(text: str) -> tuple[int, ...]:
    budgets = tuple(sorted(int(part) for part in text.split(",")))
    if not budgets or budgets[0] < 1:
        raise argparse.ArgumentTypeError(
            f"expected token counts of at least 1, separated by commas, got {text!r}"
        )
    return budgets


def _metrics(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if unknown := [name for name in names if name not in METRICS]:
        raise argparse.ArgumentTypeError(f"expected some of {', '.join(METRICS)}, got {', '.join(unknown)}")
    return names
