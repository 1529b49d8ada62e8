"""`precise index DIR`: documents to a saved index."""

import argparse
import sys
from pathlib import Path

from precise_rag.cli.output import Subparsers, print_json
from precise_rag.documents import read_documents
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.index import HybridIndex, HybridSettings


def add_parser(subparsers: Subparsers) -> None:
    """Register the command."""
    parser = subparsers.add_parser("index", help="build or update a searchable index")
    parser.add_argument(
        "paths", nargs="+", metavar="DIR", help="folders, or text, Markdown or JSON Lines files"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("index"), help="folder of the index (default: %(default)s)"
    )
    parser.add_argument(
        "--encoder", default=DEFAULT_ENCODER, help="sentence-transformers name or path, or openai:MODEL"
    )
    parser.add_argument(
        "--passages",
        default=HybridSettings.passages,
        help='what a passage is: "200 tokens", "paragraphs", "segments" (learned), … (default: %(default)s)',
    )
    parser.add_argument(
        "--prune",
        action="store_true",
        help="remove from the index the documents that are not in DIR any more",
    )
    parser.add_argument("--device", help="cpu, cuda, … (default: the best there is)")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Build the index, or bring an existing one up to date: only new and changed documents are encoded.

    Documents of the index that are not among those given stay, since an index may be filled from several
    folders one after the other; with --prune they go.
    """
    documents = list(read_documents(*args.paths))
    empty = [document.id for document in documents if not document.text.strip()]
    if len(empty) == len(documents):
        raise InputError(f"{_named(args.paths)}: every document is empty; there is nothing to index")
    encoder = load_encoder(args.encoder, device=args.device)
    gone: list[str] = []
    if args.out.exists():
        index = HybridIndex.load(args.out, encoder)
        index.add(documents, show_progress=True)
        gone = sorted(set(index.document_ids) - {document.id for document in documents})
        if args.prune:
            index.delete(gone)
    else:
        index = HybridIndex.build(documents, encoder, passages=args.passages, show_progress=True)
    index.save(args.out)
    for identifier in empty:
        print(f"precise: warning: {identifier}: the document is empty", file=sys.stderr)
    for identifier in gone if args.prune else ():
        print(f"precise: removed {identifier}: it is not in {_named(args.paths)}", file=sys.stderr)
    if gone and not args.prune:
        print(
            f"precise: note: {len(gone)} of the index's documents, such as {gone[0]}, are not in "
            f"{_named(args.paths)}; --prune removes them",
            file=sys.stderr,
        )
    summary = {
        "index": str(args.out),
        "documents": len(index.document_ids),
        "removed_documents": gone if args.prune else [],
        "empty_documents": empty,
        "sentences": len(index),
        "encoder": encoder.name,
    }
    if args.json:
        print_json(summary)
    else:
        print(
            f"{args.out}: {summary['documents']} documents, {summary['sentences']} sentences, {encoder.name}"
        )
    return 0


def _named(paths: list[str]) -> str:
    return ", ".join(map(str, paths))
