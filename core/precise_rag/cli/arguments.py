"""The types of arguments, how commands.toml becomes those of a parser, and the index that they name."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from precise_rag.encoders import load_encoder
from precise_rag.index import DatabaseIndex, DocumentIndex, load_index
from precise_rag.index.databases import is_database


def _path_argument(text: str) -> Path:
    """Parse a path. An empty one, which a shell makes of an unset variable, is not the current folder."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("expected a path, got an empty text; for this folder give .")
    return Path(text)


def _index_argument(text: str) -> Path | str:
    return text if is_database(text) else _path_argument(text)


_TYPES = {"path": _path_argument, "index": _index_argument, "int": int, "float": float}


def add_arguments(parser: Any, arguments: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
    """Add the arguments of a table of commands.toml to a parser, or to a group of one."""
    for name, its in arguments.items():
        options = shared[name] if its == "shared" else its
        kind = {"type": _TYPES[options["type"]]} if "type" in options else {}
        parser.add_argument(name, **{**options, **kind})


def open_index(args: argparse.Namespace) -> DocumentIndex | DatabaseIndex:
    """Load the index that the arguments name."""
    return load_index(args.index, load_encoder(args.encoder) if args.encoder else None)
