"""The saved indexes that `precise ask` and `precise serve` are given."""

import argparse
import re
from pathlib import Path
from urllib.parse import urlsplit

from precise_rag.cli.given_documents import index_argument
from precise_rag.encoders import load_encoder
from precise_rag.errors import InputError
from precise_rag.index import DatabaseIndex, DocumentIndex, load_index


def add_index_options(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add the argument INDEX, or several, and the options that say how they are opened."""
    parser.add_argument(
        "index",
        type=named_index_argument if several else index_argument,
        nargs="*" if several else None,
        metavar="[NAME=]INDEX" if several else "INDEX",
        help="what `precise index` made: a folder or a database"
        + ("; with several, agents choose by NAME (default: that of the folder)" if several else ""),
    )
    parser.add_argument(
        "--encoder",
        metavar="NAME",
        help="the encoder that the index was built with (default: all-MiniLM-L6-v2, if its package is there)",
    )
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")


def add_reranker_option(parser: argparse.ArgumentParser) -> None:
    """Add the option --reranker."""
    parser.add_argument(
        "--reranker",
        metavar="NAME",
        default="default",
        help="packaged, cascade, cohere:MODEL, a CrossEncoder of sentence-transformers, or what "
        "`precise adapt --out` wrote (default: cascade, with what `precise adapt` learned)",
    )


def open_index(args: argparse.Namespace) -> DocumentIndex | DatabaseIndex:
    """Load the index that the arguments name."""
    return _open(args.index, args)


def open_indexes(args: argparse.Namespace) -> dict[str, DocumentIndex | DatabaseIndex]:
    """Load the indexes that the arguments name, by their names. Raises InputError if two have the same."""
    names = [name for name, _ in args.index]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"two indexes are called {sorted(twice)[0]!r}; give them names: NAME=INDEX")
    return {name: _open(place, args) for name, place in args.index}


def named_index_argument(text: str) -> tuple[str, Path | str]:
    """Parse the name and the place of an index; without a name, the last part of the place is one."""
    named = re.fullmatch(r"([\w-]{1,64})=(.+)", text, re.DOTALL)
    if named:
        return named[1], index_argument(named[2])
    place = index_argument(text)
    path = (
        urlsplit(text.removeprefix("qdrant:")).path if "://" in text else str(place)
    )  # the rest may hold a password
    last = re.split(r"[\\/]", path.rstrip("\\/"))[-1].partition("?")[0].removesuffix(".lance")
    return re.sub(r"[^\w-]+", "-", last).strip("-") or "documents", place


def _open(place: Path | str, args: argparse.Namespace) -> DocumentIndex | DatabaseIndex:
    encoder = load_encoder(args.encoder, device=args.device) if args.encoder else None
    return load_index(place, encoder, device=args.device)
