"""`precise prune QUESTION [FILE]`: cut a long text down to what answers a question."""

import argparse
import sys
from pathlib import Path

from precise_rag.cli.output import show, warn
from precise_rag.documents import read_documents
from precise_rag.documents.files import decode, kind_of, read_bytes
from precise_rag.evidence import prune


def run(args: argparse.Namespace) -> int:
    """Print what is left, and on standard error how much that is."""
    file = Path(args.file or "")
    if kind_of(file) in ("records", "json", "table"):  # any field of a record may answer
        text = decode(read_bytes(file), file)
    elif args.file:
        text = "\n\n".join(document.text for document in read_documents(args.file))
    else:
        text = sys.stdin.buffer.read().decode(errors="replace")
    pruned = prune(text, args.question, args.max_tokens)
    show(pruned.text)
    warn(f"{pruned.n_tokens} of {pruned.n_tokens_before} tokens")
    return 0
