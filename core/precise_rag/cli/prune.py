"""`precise prune QUESTION [FILE]`: cut a long text down to what answers a question."""

import argparse
import sys

from precise_rag.cli.output import show, warn
from precise_rag.documents import read_documents
from precise_rag.evidence import prune


def run(args: argparse.Namespace) -> int:
    """Print what is left, and on standard error how much that is."""
    if args.file:
        text = "\n\n".join(document.text for document in read_documents(args.file))
    else:
        text = sys.stdin.buffer.read().decode(errors="replace")
    pruned = prune(text, args.question, args.max_tokens)
    show(pruned.text)
    warn(f"{pruned.n_tokens} of {pruned.n_tokens_before} tokens")
    return 0
