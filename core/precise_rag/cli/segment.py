"""`precise segment FILE…`: cut documents into chunks."""

import argparse
from collections.abc import Iterable, Iterator

from precise_rag.cli.given_documents import (
    Problems,
    add_bad_file_options,
    add_reading_options,
    iterate_given,
    path_argument,
)
from precise_rag.cli.output import Subparsers, is_terminal, print_json, show
from precise_rag.segmentation import Segmenter
from precise_rag.titles import HEADER_PATH
from precise_rag.types import Chunk, Document
from precise_rag.viz.terminal import visible_line


def add_parser(subparsers: Subparsers) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "segment",
        help="cut documents into chunks where the topic changes",
        description="Cut documents into chunks where the topic changes, and print the chunks.",
    )
    parser.add_argument(
        "paths",
        type=path_argument,
        nargs="+",
        metavar="FILE",
        help="folders, or text, Markdown or JSON Lines files",
    )
    add_model_options(parser)
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")
    add_reading_options(parser)
    add_bad_file_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object per chunk")
    parser.set_defaults(run=run)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a segmenter and its settings."""
    parser.add_argument(
        "--model",
        metavar="NAME",
        default="small",
        help="small, sage-minilm, or a folder made by `precise train` (default: %(default)s)",
    )
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", help="most tokens of a chunk (default: the model's setting)"
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="SCORE",
        help="cut where the score is below this, from 0 to 1 (default: the model's setting)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the chunks of each document, in order."""
    options = {"max_tokens": args.max_tokens, "threshold": args.threshold}
    segmenter = Segmenter.from_pretrained(
        args.model,
        device=args.device,
        **{name: value for name, value in options.items() if value is not None},
    )
    documents, problems = iterate_given(args)
    show_progress = is_terminal("stderr") and not is_terminal("stdout")
    filled = _filled(documents, problems)
    for chunks in segmenter.segment_many(filled, show_progress=show_progress):
        for number, chunk in enumerate(chunks, start=1):
            if args.json:
                print_json(_record(chunk))
            else:
                place = f"{chunk.start}–{chunk.end}"
                show(f"── {visible_line(chunk.doc_id)} · chunk {number} · {place} · {chunk.n_tokens} tokens")
                show(chunk.text.strip())
    return problems.show()


def _filled(documents: Iterable[Document], problems: Problems) -> Iterator[Document]:
    """The documents that have words; the others are problems."""
    for document in documents:
        if document.text.strip():
            yield document
        else:
            problems.add(f"{document.id}: the document is empty, so there is nothing to segment")


def _record(chunk: Chunk) -> dict[str, object]:
    path = {HEADER_PATH: chunk.metadata[HEADER_PATH]} if HEADER_PATH in chunk.metadata else {}
    return {
        "doc_id": chunk.doc_id,
        "start": chunk.start,
        "end": chunk.end,
        "n_tokens": chunk.n_tokens,
        **path,
        "text": chunk.text,
    }
