"""`precise index PATH…`: build a searchable index and save it."""

import argparse
import os
import re
import sys
from pathlib import Path, PurePosixPath

from precise_rag._progress import progress_bar
from precise_rag.cli.output import is_terminal, print_json, show, show_problems, warn
from precise_rag.documents import read_documents
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.index import DatabaseIndex, HybridIndex, HybridSettings
from precise_rag.index.databases import is_database
from precise_rag.index.folder import has_index
from precise_rag.types import Document

DEFAULTS = {"encoder": DEFAULT_ENCODER, "passages": HybridSettings.passages}


def run(args: argparse.Namespace) -> int:
    """Build the index, or update an existing one, which encodes only new and changed documents."""
    for path in args.paths:
        if not is_database(args.out) and os.path.realpath(path) == os.path.realpath(args.out):
            raise InputError(f"--out must be another folder than {path}, whose documents are read")
    problems: list[InputError] = []
    read = read_documents(*args.paths, exclude=args.exclude, on_error=problems.append)
    documents = list(progress_bar(read, shown=is_terminal(sys.stderr), desc="reading", unit="document"))
    empty = [document.id for document in documents if not document.text.strip()]
    if len(empty) == len(documents):
        if show_problems(problems):
            return 1
        raise InputError(f"{_named(args.paths)}: every document is empty, so there is nothing to index")
    encoder = load_encoder(args.encoder, device=args.device)
    options = {"passages": args.passages} if args.passages != HybridSettings.passages else {}
    index: HybridIndex | DatabaseIndex
    if is_database(args.out):
        index = DatabaseIndex(args.out, encoder, **options)
        removed = _update(index, documents, args, problems)
        index.optimize()
    else:
        index = HybridIndex(encoder, **options)
        with HybridIndex.lock(args.out):
            if has_index(args.out):
                index = HybridIndex.load(args.out, encoder, **options)
            removed = _update(index, documents, args, problems)
            index.save(args.out)
    for identifier in removed:
        warn(f"removed {identifier}: it is not in {_named(args.paths)}")
    for identifier in empty:
        warn(f"warning: {identifier}: the document is empty")
    summary = {
        "index": index.engine.location if isinstance(index, DatabaseIndex) else str(args.out),
        "documents": len(index.document_ids),
        "sentences": len(index),
        "encoder": encoder.name,
    }
    if args.json:
        outcome = {"removed_documents": removed, "unreadable": [str(problem) for problem in problems]}
        print_json({**summary, "empty_documents": empty, **outcome})
    else:
        show("{index}: {documents} documents, {sentences} sentences, {encoder}".format(**summary))
    return show_problems(problems)


def _update(
    index: HybridIndex | DatabaseIndex,
    documents: list[Document],
    args: argparse.Namespace,
    problems: list[InputError],
) -> list[str]:
    """Add documents to an index. Returns the ids of those that --prune removed.

    Others of the index stay without --prune, because an index may be filled from several folders in turn.
    """
    known = set(index.document_ids) if isinstance(index, HybridIndex) else set()
    new = [d.id for d in documents if d.id in known and index.document(d.id).text != d.text]
    index.add(documents, show_progress=is_terminal(sys.stderr))
    if new:
        warn(f"note: {len(new)} of the index's documents, such as {new[0]}, had another text before")
    gone = sorted(set(index.document_ids) - {document.id for document in documents})
    stay = [identifier for identifier in gone if not args.prune or _may_be_in(identifier, problems)]
    removed = sorted(set(gone) - set(stay))
    index.delete(removed)
    if isinstance(index, HybridIndex) and args.prune and index.has_deleted:
        index.compact()  # so that the files keep nothing of their texts
    if stay:
        why = "may be in what could not be read" if args.prune else f"are not in {_named(args.paths)}"
        advice = "so they stay" if args.prune else "name all its folders, or use --prune if they are gone"
        warn(f"note: {len(stay)} of the index's documents, such as {stay[0]}, {why}; {advice}")
    return removed


def _may_be_in(identifier: str, problems: list[InputError]) -> bool:
    """Whether a problem names the file, or a folder above it, that a document was read from."""
    file = PurePosixPath(identifier.split("#")[0])
    places = "|".join(re.escape(str(place)) for place in (file, *file.parents[:-1]))
    named = re.compile(rf"(?:\A|[/\\ ])(?:{places})(?=[:,;]| and )")
    return any(named.search(str(problem)) for problem in problems)


def _named(paths: list[Path]) -> str:
    return ", ".join(map(str, paths))
