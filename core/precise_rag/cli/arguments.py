"""Arguments that several commands take: documents, and a saved index."""

import argparse
from pathlib import Path

from precise_rag.encoders import load_encoder
from precise_rag.index import DatabaseIndex, DocumentIndex, load_index
from precise_rag.index.databases import is_database


def path_argument(text: str) -> Path:
    """Parse a path. An empty one, which a shell makes of an unset variable, is not the current folder."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("expected a path, got an empty text; for this folder give .")
    return Path(text)


def index_argument(text: str) -> Path | str:
    """Parse the place of an index: a folder, or the location of a database."""
    return text if is_database(text) else path_argument(text)


def add_paths(parser: argparse.ArgumentParser, *, default: str = "") -> None:
    """Add the arguments PATH and the option --exclude. default: what is read without a path, if anything."""
    parser.add_argument(
        "paths",
        type=path_argument,
        nargs="*" if default else "+",
        metavar="PATH",
        help="files, or folders, which are read at any depth" + (f" (default: {default})" if default else ""),
    )
    parser.add_argument(
        "--exclude",
        metavar="PATTERN",
        action="append",
        default=[],
        help="skip files and folders whose name or path matches, such as '*.log'; can be repeated",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the option --device."""
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")


def add_index(parser: argparse.ArgumentParser) -> None:
    """Add the argument INDEX and the option --encoder."""
    parser.add_argument("index", type=index_argument, metavar="INDEX", help="what `precise index` made")
    parser.add_argument(
        "--encoder", metavar="NAME", help="encoder that the index was built with (default: the packaged one)"
    )


def open_index(args: argparse.Namespace) -> DocumentIndex | DatabaseIndex:
    """Load the index that the arguments name."""
    return load_index(args.index, load_encoder(args.encoder) if args.encoder else None)
