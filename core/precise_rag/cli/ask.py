"""`precise ask INDEX QUESTION`: search a saved index, and answer the question if --llm names a model."""

import argparse
import sys
from contextlib import suppress

from precise_rag.answer import Answer
from precise_rag.cli.arguments import open_index
from precise_rag.cli.output import (
    barred,
    check_writable,
    count_kept_tokens,
    print_json,
    print_selection,
    show,
    source_of,
)
from precise_rag.errors import IndexFormatError, InputError
from precise_rag.filters import parse_assignments
from precise_rag.index.folder import read_manifest
from precise_rag.llm import Budget, OpenAIChat
from precise_rag.pipeline import PreciseRAG
from precise_rag.redaction import visible_line
from precise_rag.trace import Trace
from precise_rag.trace.record import decision_records

_NO_MODEL = (
    "Shown is the context for a language model. For an answer, name one with --llm (its key: OPENAI_API_KEY; "
    "another server that is compatible with OpenAI, such as a local one: --base-url URL)."
)


def run(args: argparse.Namespace) -> int:
    """Print each candidate with the decision on it, then the answer."""
    if args.trace:
        if args.trace.suffix not in (".html", ".json"):
            raise InputError(f"--trace must end in .html or .json, got {args.trace}")
        with suppress(IndexFormatError):
            read_manifest(args.trace.parent)
            raise InputError(f"{args.trace} would lie in the folder of an index; name a file elsewhere")
        check_writable(args.trace)
    if sys.stdout is None:  # an answer costs money
        raise InputError("standard output is closed, so the answer cannot be printed; open it")
    rag = PreciseRAG(
        open_index(args),
        reranker=args.reranker,
        max_tokens=args.max_tokens,
        llm=OpenAIChat(args.llm, base_url=args.base_url, max_retries=1) if args.llm else None,
        budget=Budget(seconds=300),  # somebody waits
    )
    trace = Trace(args.question)
    try:
        answer = rag.answer(args.question, filter=parse_assignments(args.filter), trace=trace)
        if args.json:
            print_json(_record(args.question, answer, trace))
        else:
            _show(answer, trace)
    finally:
        if args.trace and trace.stages:  # also if a model or the output fails: calls are paid for
            page = trace.to_html() if args.trace.suffix == ".html" else trace.to_json()
            args.trace.write_text(page, encoding="utf-8", errors="backslashreplace")
    return 0


def _show(answer: Answer, trace: Trace) -> None:
    """Print the selection, then the answer with its numbered sources, or the context without a model."""
    print_selection(answer.selection)
    show(f"\n{len(answer.selection.kept)} kept, {count_kept_tokens(answer.selection)} tokens")
    if answer.kind == "context":
        show("Context:" if answer.passages else f"Note: {answer.note}")
        for passage in answer.passages:
            show(f"\n[{passage.number}] {source_of(passage)}\n{barred(passage.text.strip())}")
        show(f"\nNote: {answer.note}" if trace.rounds else f"\n{_NO_MODEL}")
        return
    cited = {passage.number for passage in answer.citations}
    show(f"Answer:\n{barred(answer.text)}\n\nSources:")
    for passage in answer.passages:
        show(f"[{passage.number}] {source_of(passage)}{'' if passage.number in cited else ' (not cited)'}")
    cost = "cost unknown" if trace.cost is None else f"${trace.cost:.6f}"
    show(
        f"\nNote: {visible_line(answer.note)}\n{len(trace.calls)} calls, {trace.input_tokens} input and "
        f"{trace.output_tokens} output tokens, {cost}"
    )


def _record(question: str, answer: Answer, trace: Trace) -> dict[str, object]:
    used = {name: getattr(trace, name) for name in ("input_tokens", "output_tokens", "cost")}
    return {
        "question": question,
        "kind": answer.kind,
        "answer": answer.text,
        "note": answer.note,
        "tokens": count_kept_tokens(answer.selection),
        "sources": [
            {**excerpt.to_dict(), "cited": passage in answer.citations}
            for excerpt, passage in zip(trace.context, answer.passages, strict=True)
        ],
        "candidates": decision_records(answer.selection),
        "usage": {"calls": len(trace.calls), **used},
    }
