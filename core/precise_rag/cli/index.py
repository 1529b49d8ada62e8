"""`precise index DIR…`: build a searchable index and save it."""

import argparse
from pathlib import Path

from precise_rag.cli.output import Subparsers, is_terminal, print_json, show, warn
from precise_rag.cli.reading import add_reading_options, index_argument, path_argument, read_given
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.index import DatabaseIndex, HybridIndex, HybridSettings
from precise_rag.index.databases import is_database
from precise_rag.index.storage.manifest import has_index
from precise_rag.protocols import Encoder
from precise_rag.types import Document


def add_parser(subparsers: Subparsers) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "index",
        help="build a searchable index, or update one",
        description="Build a searchable index of documents for `precise ask`. "
        "If there is one already, only new and changed documents are encoded.",
    )
    parser.add_argument(
        "paths",
        type=path_argument,
        nargs="+",
        metavar="DIR",
        help="folders, or text, Markdown or JSON Lines files",
    )
    parser.add_argument(
        "--out",
        type=index_argument,
        metavar="INDEX",
        default=Path("index"),
        help="folder of the index, or a database: NAME.lance or postgresql://…; "
        "if it exists, the index in it is updated (default: %(default)s)",
    )
    parser.add_argument(
        "--encoder",
        metavar="NAME",
        default=DEFAULT_ENCODER,
        help="sentence-transformers model or folder, or openai:MODEL (default: %(default)s)",
    )
    parser.add_argument(
        "--passages",
        default=HybridSettings.passages,
        metavar="PASSAGES",
        help='for a new index, the passages that give a sentence its context: "sentences", "paragraphs", '
        '"segments" (cut where the topic changes) or a size like "200 tokens" (default: %(default)s)',
    )
    parser.add_argument(
        "--prune",
        action="store_true",
        help="remove documents from the index that are not in DIR; none if a file in it cannot be read",
    )
    add_reading_options(parser)
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Build the index, or update an existing one, which encodes only new and changed documents.

    Documents of the index that are not in the given folders stay, because an index may be filled from
    several folders in turn; --prune removes them, unless something could not be read: it may hold them.
    """
    documents, problems = read_given(args)
    empty = [document.id for document in documents if not document.text.strip()]
    if len(empty) == len(documents):
        if problems.show():
            return 1
        raise InputError(f"{_named(args.paths)}: every document is empty, so there is nothing to index")
    encoder = load_encoder(args.encoder, device=args.device)
    prune = args.prune and not problems.count
    index, gone = (_in_database if is_database(args.out) else _in_folder)(args, encoder, documents, prune)
    for identifier in empty:
        warn(f"warning: {identifier}: the document is empty")
    for identifier in gone if prune else ():
        warn(f"removed {identifier}: it is not in {_named(args.paths)}")
    if gone and not prune:
        hint = "use" if not args.prune else "as not everything could be read, none is removed; repeat with"
        warn(
            f"note: {len(gone)} of the index's documents, such as {gone[0]}, are not in "
            f"{_named(args.paths)}; {hint} --prune to remove them"
        )
    place = index.engine.location if isinstance(index, DatabaseIndex) else str(args.out)
    summary = {
        "index": place,
        "documents": len(index.document_ids),
        "removed_documents": gone if prune else [],
        "empty_documents": empty,
        "unreadable": problems.messages,
        "sentences": len(index),
        "encoder": encoder.name,
    }
    if args.json:
        print_json(summary)
    else:
        show(f"{place}: {summary['documents']} documents, {summary['sentences']} sentences, {encoder.name}")
    return problems.show()


def _in_folder(
    args: argparse.Namespace, encoder: Encoder, documents: list[Document], prune: bool
) -> tuple[HybridIndex | DatabaseIndex, list[str]]:
    """The index, and the ids in it of documents that were not given."""
    if not has_index(args.out):
        _ = encoder.dimension  # an encoder that cannot be loaded fails here, before the folder is made
    gone: list[str] = []
    with HybridIndex.lock(args.out):
        if has_index(args.out):
            given = {"passages": args.passages} if args.passages != HybridSettings.passages else {}
            index = HybridIndex.load(args.out, encoder, **given)
            index.add(documents, show_progress=is_terminal("stderr"))
            gone = sorted(set(index.document_ids) - {document.id for document in documents})
            if prune:
                index.delete(gone)
        else:
            index = HybridIndex.build(
                documents, encoder, passages=args.passages, show_progress=is_terminal("stderr")
            )
        index.save(args.out)
    return index, gone


def _in_database(
    args: argparse.Namespace, encoder: Encoder, documents: list[Document], prune: bool
) -> tuple[HybridIndex | DatabaseIndex, list[str]]:
    """As `_in_folder`, for a database."""
    given = {"passages": args.passages} if args.passages != HybridSettings.passages else {}
    index = DatabaseIndex(args.out, encoder, **given)
    index.add(documents, show_progress=is_terminal("stderr"))
    gone = sorted(set(index.document_ids) - {document.id for document in documents})
    if prune:
        index.delete(gone)
    index.optimize()
    return index, gone


def _named(paths: list[Path]) -> str:
    return ", ".join(map(str, paths))
