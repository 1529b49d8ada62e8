"""`precise ask INDEX QUESTION`: search a saved index, and answer the question if --llm names a model."""

import argparse
import sys
from typing import Any

from precise_rag.answer import Answer
from precise_rag.cli.conversation import converse
from precise_rag.cli.given_documents import path_argument
from precise_rag.cli.output import (
    Subparsers,
    check_writable,
    count_kept_tokens,
    flush,
    is_terminal,
    print_json,
    print_selection,
    rescue,
    selection_record,
    show,
    show_styled,
    write_file,
)
from precise_rag.cli.saved_index import add_index_options, add_reranker_option, open_index
from precise_rag.context import Passage
from precise_rag.documents import place_of
from precise_rag.errors import InputError
from precise_rag.filters import parse_assignments
from precise_rag.llm import Budget, OpenAIChat
from precise_rag.pipeline import PreciseRAG
from precise_rag.redaction import visible, visible_line
from precise_rag.selection import GradientSelector, ProbabilitySelector
from precise_rag.structure.tables import BETWEEN_CELLS
from precise_rag.trace import Bill, PriceTable, Trace

_NO_MODEL = (
    "Shown is the context for a language model. For an answer, name one with --llm (its key: OPENAI_API_KEY; "
    "another server that is compatible with OpenAI, such as a local one: --base-url URL)."
)


def add_parser(subparsers: Subparsers) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "ask",
        help="ask a question about the documents of an index",
        description="Find the sentences of an index that answer a question. "
        "With --llm, a language model writes the answer from them.",
    )
    add_index_options(parser)
    parser.add_argument(
        "question", metavar="QUESTION", nargs="?", help="the question, in quotes (default: a conversation)"
    )
    add_reranker_option(parser)
    parser.add_argument(
        "--min-score",
        type=float,
        metavar="PROBABILITY",
        help="drop sentences that are less likely to belong to the evidence "
        f"(default: {ProbabilitySelector().min_score})",
    )
    parser.add_argument(
        "--share-of-best",
        type=float,
        metavar="SHARE",
        help="drop sentences that are less likely than this share of the best one "
        f"(default: {ProbabilitySelector().share_of_best})",
    )
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="search only documents whose metadata has this value; the same field again: one of the "
        'values; another field: both. JSON for more, such as {"year": {"$gte": 2020}}',
    )
    parser.add_argument(
        "--min-k",
        type=int,
        metavar="N",
        help="select by gradient: look for a sharp drop after this many (default: by probability)",
    )
    parser.add_argument(
        "--ratio",
        type=float,
        metavar="SHARE",
        help="select by gradient: a drop is sharp if a score is at most this share of the one before",
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        metavar="N",
        help="send at most this many tokens, titles and marks included (default: no limit)",
    )
    parser.add_argument(
        "--llm",
        metavar="MODEL",
        help="chat model that writes the answer; needs the extra openai (default: print the context only)",
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="OpenAI-compatible server of the model (default: OPENAI_BASE_URL, or OpenAI)",
    )
    parser.add_argument(
        "--max-cost",
        type=float,
        metavar="DOLLARS",
        help="make no call that would cost more than this in total (default: no limit)",
    )
    parser.add_argument(
        "--prices",
        type=path_argument,
        metavar="FILE",
        help="your price table, a TOML file (default: the packaged table)",
    )
    parser.add_argument(
        "--trace",
        type=path_argument,
        metavar="FILE",
        help="write what each stage did to an .html or .json file",
    )
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print each candidate with the decision on it, then the answer."""
    _check_outputs(args)
    wanted = parse_assignments(args.filter)
    rag = PreciseRAG(
        open_index(args),
        reranker=args.reranker,
        selector=_selector(args),
        max_tokens=args.max_tokens,
        llm=OpenAIChat(args.llm, base_url=args.base_url) if args.llm else None,
        budget=Budget(cost=args.max_cost),
        prices=PriceTable.load(args.prices),
    )
    if args.question is None:
        if rag.llm is None:
            show(_NO_MODEL)
        return converse(
            lambda question, history, trace: rag.answer(
                question, history=history if rag.llm else (), filter=wanted, trace=trace
            ),
            _show_reply,
        )
    trace = Trace(args.question)
    done = False
    try:
        _print_answer(rag.answer(args.question, filter=wanted, trace=trace), trace, args)
        done = True
    finally:
        if args.trace and (done or trace.calls):  # whatever was paid for is in the trace
            write_file(args.trace, _trace_file(trace, args))
    return 0


def _trace_file(trace: Trace, args: argparse.Namespace) -> str:
    return trace.to_html() if args.trace.suffix == ".html" else trace.to_json()


def _selector(args: argparse.Namespace) -> ProbabilitySelector | GradientSelector:
    """The selector by probability, or by gradient if one of its own settings is given."""

    def given(*names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(args, name)) is not None}

    limits = given("min_score", "share_of_best")
    gradient = given("min_k", "ratio")
    return GradientSelector(**gradient, **limits) if gradient else ProbabilitySelector(**limits)


def _check_outputs(args: argparse.Namespace) -> None:
    """Raises InputError if the answer could not be written anywhere: it costs money."""
    if args.question is None and (args.json or args.trace or not is_terminal("stdin")):
        raise InputError(
            "no question; give one in quotes (a conversation needs a terminal, and not --json or --trace)"
        )
    if args.trace:
        if args.trace.suffix not in (".html", ".json"):
            raise InputError(f"--trace must end in .html or .json, got {args.trace}")
        check_writable(args.trace)
    if sys.stdout is None:
        raise InputError("standard output is closed, so the answer cannot be printed; open it")


def _print_answer(answer: Answer, trace: Trace, args: argparse.Namespace) -> None:
    try:
        if args.json:
            print_json(_record(args.question, answer, trace))
        else:
            _show_answer(answer, trace, args)
        flush()
    except OSError:
        if answer.kind == "generated":
            rescue(f"Answer:\n{answer.text}")
        raise


def _show_answer(answer: Answer, trace: Trace, args: argparse.Namespace) -> None:
    print_selection(answer.selection)
    show(f"\n{len(answer.selection.kept)} kept, {count_kept_tokens(answer.selection)} tokens")
    _show_reply(answer, trace)
    if answer.kind == "context":
        show(f"\n{_NO_MODEL}")


def _show_reply(answer: Answer, trace: Trace) -> None:
    """Print the answer with its numbered sources, or the context, each passage under its source."""
    cited = {passage.number for passage in answer.citations}
    if answer.kind == "context":
        if not answer.passages:
            show(f"Note: {answer.note}")
            return
        show("Context:")
        for passage in answer.passages:
            show_styled(f"\n[{passage.number}] {_label(passage)}\n{visible(passage.text.strip())}")
        return
    show(f"Answer:\n{answer.text}\n\nSources:")
    for passage in answer.passages:
        note = "" if passage.number in cited else " (not cited)"
        show(f"[{passage.number}] {visible_line(str(place_of(passage)))}{note}")
    bill = Bill(len(trace.calls), trace.input_tokens, trace.output_tokens, trace.cost)
    show(f"\nNote: {answer.note}\n{_bill(bill)}")


def _label(passage: Passage) -> str:
    """Where a passage stands, and the head of the table if it begins below one."""
    place = place_of(passage)
    titles = passage.titles[-1:]
    head = [title for title in titles if BETWEEN_CELLS in title and title not in place.headings]
    return "\n".join(visible_line(line) for line in (str(place), *head))


def _record(question: str, answer: Answer, trace: Trace) -> dict[str, object]:
    return {
        "question": question,
        "kind": answer.kind,
        "answer": answer.text,
        "note": answer.note,
        "tokens": count_kept_tokens(answer.selection),
        "sources": [
            {
                "number": passage.number,
                **place_of(passage)._asdict(),
                "start": passage.start,
                "end": passage.end,
                "cited": passage in answer.citations,
            }
            for passage in answer.passages
        ],
        "candidates": selection_record(answer.selection),
        "usage": {
            "calls": len(trace.calls),
            "input_tokens": trace.input_tokens,
            "output_tokens": trace.output_tokens,
            "cost": trace.cost,
        },
    }


def _bill(bill: Bill) -> str:
    tokens = f"{bill.input_tokens} input and {bill.output_tokens} output tokens"
    return f"{bill.calls} calls, {tokens}, {_dollars(bill.cost)}"


def _dollars(cost: float | None) -> str:
    return "cost unknown (no price for the model; see --prices)" if cost is None else f"${cost:.6f}"
