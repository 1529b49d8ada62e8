"""`precise ask INDEX "question"`: search a saved index, and answer if a language model is named."""

import argparse
import os
from pathlib import Path

from precise_rag.answer import Answer
from precise_rag.cli.output import (
    Subparsers,
    count_kept_tokens,
    print_json,
    print_selection,
    selection_record,
)
from precise_rag.errors import InputError
from precise_rag.index import load_index
from precise_rag.llm import Budget, OpenAIChat
from precise_rag.pipeline import DEFAULT_SELECTOR, PreciseRAG
from precise_rag.selection import GradientSelector
from precise_rag.trace import Bill, PriceTable, Trace


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser("ask", help="ask a saved index a question")
    parser.add_argument("index", type=Path, metavar="INDEX", help="a folder made by `precise index`")
    parser.add_argument("question")
    parser.add_argument("--min-k", type=int, default=DEFAULT_SELECTOR.min_k, help="keep at least this many")
    parser.add_argument(
        "--ratio",
        type=float,
        default=DEFAULT_SELECTOR.ratio,
        help="cut where a score falls to this share of the one before",
    )
    parser.add_argument(
        "--floor", type=float, default=DEFAULT_SELECTOR.floor, help="keep nothing that scores under this"
    )
    parser.add_argument("--max-tokens", type=int, help="send at most this many tokens")
    parser.add_argument("--llm", metavar="MODEL", help="answer with this chat model (needs the extra openai)")
    parser.add_argument(
        "--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="an OpenAI-compatible server"
    )
    parser.add_argument(
        "--max-cost", type=float, metavar="DOLLARS", help="stop before a call would pass this"
    )
    parser.add_argument("--prices", type=Path, metavar="FILE", help="a price table of your own (TOML)")
    parser.add_argument(
        "--dry-run", action="store_true", help="estimate calls, tokens and cost; ask no model"
    )
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="write the whole record, as .html or .json"
    )
    parser.add_argument("--device", help="cpu, cuda, … (default: the best there is)")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the candidates with the decision on each, then the answer."""
    if args.trace and args.trace.suffix not in (".html", ".json"):
        raise InputError(f"--trace {args.trace}: the name must end in .html or .json")
    rag = PreciseRAG(
        load_index(args.index, device=args.device),
        selector=GradientSelector(
            min_k=args.min_k, ratio=args.ratio, floor=args.floor, max_tokens=args.max_tokens
        ),
        llm=OpenAIChat(args.llm, base_url=args.base_url) if args.llm else None,
        budget=Budget(cost=args.max_cost),
        prices=PriceTable.load(args.prices),
    )
    if args.dry_run:
        return _estimate(rag, args)
    trace = Trace(args.question)
    answer = rag.answer(args.question, trace=trace)
    if args.trace:
        args.trace.write_text(trace.to_html() if args.trace.suffix == ".html" else trace.to_json(), "utf-8")
    if args.json:
        print_json(_record(args.question, answer, trace))
        return 0
    print_selection(answer.selection)
    print(f"\n{len(answer.selection.kept)} kept, {count_kept_tokens(answer.selection)} tokens")
    print(f"{'Answer' if answer.kind == 'generated' else 'Context (no language model is configured)'}:")
    print(answer.text)
    if answer.kind == "generated":
        bill = Bill(len(trace.calls), trace.input_tokens, trace.output_tokens, trace.cost)
        print(f"\nNote: {answer.note}\n{_bill(bill)}")
    return 0


def _record(question: str, answer: Answer, trace: Trace) -> dict[str, object]:
    return {
        "question": question,
        "kind": answer.kind,
        "answer": answer.text,
        "note": answer.note,
        "tokens": count_kept_tokens(answer.selection),
        "candidates": selection_record(answer.selection),
        "usage": {
            "calls": len(trace.calls),
            "input_tokens": trace.input_tokens,
            "output_tokens": trace.output_tokens,
            "cost": trace.cost,
        },
    }


def _estimate(rag: PreciseRAG, args: argparse.Namespace) -> int:
    least, most = rag.estimate(args.question)
    if args.json:
        print_json({"question": args.question, "least": least._asdict(), "most": most._asdict()})
    else:
        print(f"at least {_bill(least)}\nat most  {_bill(most)}")
    return 0


def _bill(bill: Bill) -> str:
    return f"{bill.calls} calls, {bill.input_tokens} + {bill.output_tokens} tokens, {_dollars(bill.cost)}"


def _dollars(cost: float | None) -> str:
    return "cost unknown (the model has no price; see --prices)" if cost is None else f"${cost:.6f}"
