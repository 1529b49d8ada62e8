"""`precise ask INDEX "question"`: search a saved index, and answer if a language model is named."""

import argparse
import os
from pathlib import Path

from precise_rag.cli.output import (
    Subparsers,
    count_kept_tokens,
    print_json,
    print_selection,
    selection_record,
)
from precise_rag.index import load_index
from precise_rag.llm import OpenAIChat
from precise_rag.pipeline import PreciseRAG
from precise_rag.selection import GradientSelector


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser("ask", help="ask a saved index a question")
    parser.add_argument("index", type=Path, metavar="INDEX", help="a folder made by `precise index`")
    parser.add_argument("question")
    parser.add_argument("--min-k", type=int, default=GradientSelector().min_k, help="keep at least this many")
    parser.add_argument(
        "--ratio",
        type=float,
        default=GradientSelector().ratio,
        help="cut where a score falls below this share of the one before",
    )
    parser.add_argument("--max-tokens", type=int, help="send at most this many tokens")
    parser.add_argument("--llm", metavar="MODEL", help="answer with this chat model (needs the extra openai)")
    parser.add_argument(
        "--base-url", default=os.environ.get("OPENAI_BASE_URL"), help="an OpenAI-compatible server"
    )
    parser.add_argument("--device", help="cpu, cuda, … (default: the best there is)")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the candidates with the decision on each, then the answer."""
    selector = GradientSelector(min_k=args.min_k, ratio=args.ratio, max_tokens=args.max_tokens)
    llm = OpenAIChat(args.llm, base_url=args.base_url) if args.llm else None
    rag = PreciseRAG(load_index(args.index, device=args.device), selector=selector, llm=llm)
    answer = rag.answer(args.question)
    if args.json:
        print_json(
            {
                "question": args.question,
                "kind": answer.kind,
                "answer": answer.text,
                "note": answer.note,
                "tokens": count_kept_tokens(answer.selection),
                "candidates": selection_record(answer.selection),
            }
        )
        return 0
    print_selection(answer.selection)
    print(f"\n{len(answer.selection.kept)} kept, {count_kept_tokens(answer.selection)} tokens")
    print(f"{'Answer' if answer.kind == 'generated' else 'Context (no language model is configured)'}:")
    print(answer.text)
    if answer.note and answer.kind == "generated":
        print(f"\nNote: {answer.note}")
    return 0
