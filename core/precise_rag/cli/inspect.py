"""`precise inspect FILE [A B]`: show where a document is cut, and why, or how two splitters differ."""

import argparse
from typing import Any

from precise_rag.cli.given_documents import add_reading_options, path_argument
from precise_rag.cli.output import Subparsers, check_writable, is_terminal, show, show_styled, write_file
from precise_rag.cli.segment import add_model_options
from precise_rag.documents import read_documents
from precise_rag.errors import InputError
from precise_rag.evaluation.splitters import STOCK_NAMES, load_stock_splitter
from precise_rag.segmentation import Segmenter
from precise_rag.types import Document, Span
from precise_rag.viz.comparison import Cut, comparison_lines, comparison_page
from precise_rag.viz.segmentation_page import segmentation_page
from precise_rag.viz.segmentation_terminal import segmentation_lines


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "inspect",
        help="show where a document is cut, and why",
        description="Show the structure of a document, the score of each gap between its sentences, the "
        "chunks and why each cut was made; or the chunks of two splitters side by side.",
    )
    parser.add_argument(
        "path", type=path_argument, metavar="FILE", help="text, Markdown, HTML or JSON Lines file"
    )
    parser.add_argument(
        "splitters",
        nargs="*",
        metavar="SPLITTER",
        help="two splitters to compare: small, sage-minilm, a folder made by `precise train`, or "
        + ", ".join(STOCK_NAMES),
    )
    add_reading_options(parser)
    parser.add_argument("--document", metavar="ID", help="document of the file (default: the first)")
    parser.add_argument(
        "--html", type=path_argument, metavar="OUT", help="write an HTML page instead of printing"
    )
    add_model_options(parser)
    parser.add_argument(
        "--paragraphs",
        choices=("hard", "soft"),
        help="hard: cut at every blank line; soft: only if the score is low (default: the model's setting)",
    )
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="coloured output (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the document with its scores, or write its page."""
    if args.html:
        check_writable(args.html)
    if len(args.splitters) not in (0, 2):
        raise InputError(f"name two splitters to compare, or none, got {' '.join(args.splitters)}")
    names = ("max_tokens", "threshold", "paragraphs")
    options = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.splitters:
        return _compare(args, options)
    segmenter = Segmenter.from_pretrained(args.model, device=args.device, **options)
    document = _document(args)
    segmentation = segmenter.explain(document)
    if args.html:
        write_file(args.html, segmentation_page(document, segmentation, segmenter.options))
        show(args.html)
        return 0
    color = args.color == "always" or (args.color == "auto" and is_terminal("stdout"))
    for line in segmentation_lines(document, segmentation, segmenter.options, color=color):
        show_styled(line)
    return 0


def _compare(args: argparse.Namespace, options: dict[str, Any]) -> int:
    """Print or write the chunks of two splitters; the options are for those of this library."""
    stock = {name: load_stock_splitter(name) for name in args.splitters if ":" in name}
    own = {
        name: Segmenter.from_pretrained(name, device=args.device, **options)
        for name in args.splitters
        if name not in stock
    }
    document = _document(args)
    counter = next(iter(own.values()), None) or Segmenter.from_pretrained("small")

    def cut(name: str) -> Cut:
        if name in stock:
            spans = stock[name](document)
        else:
            spans = [Span(chunk.start, chunk.end) for chunk in own[name].segment(document)]
        counts = counter.model.count_tokens([document.text[start:end] for start, end in spans])
        return name, spans, counts.tolist()

    sides = (cut(args.splitters[0]), cut(args.splitters[1]))
    if args.html:
        write_file(args.html, comparison_page(document, sides))
        show(args.html)
        return 0
    for line in comparison_lines(document, sides):
        show_styled(line)
    return 0


def _document(args: argparse.Namespace) -> Document:
    """The document to show. Raises InputError if it is missing or empty."""
    for document in read_documents(
        args.path, follow_links=args.follow_links, max_bytes=args.max_bytes, own_ids=True
    ):
        if args.document in (None, document.id):
            break
    else:
        missing = "has no documents" if args.document is None else f"has no document {args.document!r}"
        raise InputError(f"{args.path} {missing}")
    if not document.text.strip():
        raise InputError(f"document {document.id!r} is empty; there is nothing to inspect")
    return document
