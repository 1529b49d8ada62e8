"""The saved index that `precise ask` and `precise serve` are given."""

import argparse

from precise_rag.cli.given_documents import index_argument
from precise_rag.encoders import load_encoder
from precise_rag.index import DatabaseIndex, DocumentIndex, load_index


def add_index_options(parser: argparse.ArgumentParser) -> None:
    """Add the argument INDEX and the options that say how it is opened."""
    parser.add_argument(
        "index",
        type=index_argument,
        metavar="INDEX",
        help="what `precise index` made: a folder or a database",
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
        help="packaged, cascade, cohere:MODEL, a CrossEncoder of sentence-transformers, or a file that "
        "`Adaptation.save` wrote (default: cascade, with what the index has learned)",
    )


def open_index(args: argparse.Namespace) -> DocumentIndex | DatabaseIndex:
    """Load the index that the arguments name."""
    encoder = load_encoder(args.encoder, device=args.device) if args.encoder else None
    return load_index(args.index, encoder, device=args.device)
