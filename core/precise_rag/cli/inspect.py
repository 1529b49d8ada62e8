"""`precise inspect FILE`: a document with its sentences, scores and chunks."""

import argparse
import sys
from pathlib import Path

from precise_rag.cli.output import Subparsers
from precise_rag.documents import read_documents
from precise_rag.errors import InputError
from precise_rag.segmentation import Segmenter
from precise_rag.viz.segmentation_page import segmentation_page
from precise_rag.viz.segmentation_terminal import segmentation_lines


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser("inspect", help="show where a document is cut, and why")
    parser.add_argument("path", metavar="FILE", help="a text, Markdown or JSON Lines file")
    parser.add_argument("--document", metavar="ID", help="which document of the file (default: the first)")
    parser.add_argument("--html", type=Path, metavar="OUT", help="write a page for the browser instead")
    parser.add_argument(
        "--model", default="small", help="a packaged model or a folder (default: %(default)s)"
    )
    parser.add_argument("--max-tokens", type=int, help="hard limit of a chunk (default: the model's)")
    parser.add_argument(
        "--threshold", type=float, help="cut where the score is below this (default: the model's)"
    )
    parser.add_argument(
        "--paragraphs", choices=("hard", "soft"), help="whether a blank line is always a boundary"
    )
    parser.add_argument("--device", help="cpu, cuda, … (default: the best there is)")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="default: %(default)s"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the document, or write its page."""
    names = ("max_tokens", "threshold", "paragraphs")
    options = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    segmenter = Segmenter.from_pretrained(args.model, device=args.device, **options)
    for document in read_documents(args.path):
        if args.document in (None, document.id):
            break
    else:
        raise InputError(f"{args.path} has no document {args.document or 'at all'!r}")
    if not document.text.strip():
        raise InputError(f"{document.id}: the document is empty; there is nothing to inspect")
    found = segmenter.explain(document)
    if args.html:
        page = segmentation_page(document, found, segmenter.options)
        args.html.write_text(page, encoding="utf-8", errors="replace")
        print(args.html)
        return 0
    color = args.color == "always" or (args.color == "auto" and sys.stdout.isatty())
    for line in segmentation_lines(document, found, segmenter.options, color=color):
        print(line)
    return 0
