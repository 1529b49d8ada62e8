"""`precise index DIR…`: build a searchable index and save it."""

import argparse
import os
import re
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from precise_rag._extras import require
from precise_rag._progress import progress_bar
from precise_rag.cli.given_documents import (
    STANDARD_INPUT,
    Problems,
    add_bad_file_options,
    add_reading_options,
    index_argument,
    path_argument,
    read_given,
)
from precise_rag.cli.known_files import KnownFiles
from precise_rag.cli.output import Subparsers, check_folder, is_terminal, print_json, show, warn
from precise_rag.cli.pruning import proven_gone
from precise_rag.encoders import DEFAULT_ENCODER, load_encoder
from precise_rag.errors import InputError
from precise_rag.index import DatabaseIndex, HybridIndex, HybridSettings
from precise_rag.index.databases import is_database
from precise_rag.index.storage.manifest import has_index
from precise_rag.protocols import Encoder
from precise_rag.sentences.tables import in_batches
from precise_rag.types import Document

_SECONDS = 30.0
"""After so many the index is saved: an interruption loses no more."""
_CHARACTERS = 100_000
"""Characters that are added at a time, about: enough to encode their sentences by length."""
PASSAGES = re.compile(r"sentences|paragraphs|segments|small|[1-9][0-9]{0,8} tokens")


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
        help="folders, files, patterns such as 'docs/**/*.md', or - for standard input",
    )
    parser.add_argument(
        "--out",
        type=index_argument,
        metavar="INDEX",
        default=Path("index"),
        help="folder of the index, or a database: postgresql://…; "
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
        type=_passages,
        default=HybridSettings.passages,
        metavar="PASSAGES",
        help='for a new index, the passages that give a sentence its context: "sentences", "paragraphs", '
        '"segments" (cut where the topic changes) or a size like "200 tokens" (default: %(default)s)',
    )
    parser.add_argument(
        "--prune",
        action="store_true",
        help="remove documents from the index that are not in DIR, but none that an unreadable file may hold",
    )
    parser.add_argument(
        "--strict", action="store_true", help="index nothing if a file cannot be read (default: the others)"
    )
    parser.add_argument(
        "--watch", action="store_true", help="stay, and update the index whenever a file changes"
    )
    add_reading_options(parser)
    add_bad_file_options(parser)
    parser.add_argument("--device", help="cpu, cuda, cuda:1, … (default: a GPU if there is one)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Build the index, or update an existing one; then, with --watch, whenever a file changes."""
    _check(args)
    watch = require("watchfiles", extra="cli").watch if args.watch else None
    code = _update(args)
    if watch:
        warn(f"watching {_named(args.paths)}; end with Ctrl-C")
        own = os.path.realpath(args.out)
        for _ in watch(*args.paths, watch_filter=lambda _, path: not _is_within(path, own)):
            code = _update(args)
    return code


def _is_within(path: str, folder: str) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(folder)


def _check(args: argparse.Namespace) -> None:
    """Raises InputError for arguments that cannot work, before anything is read or encoded."""
    if args.watch and STANDARD_INPUT in args.paths:
        raise InputError("--watch needs files or folders; standard input cannot be watched")
    if is_database(args.out):
        return
    for path in args.paths:
        if path != STANDARD_INPUT and os.path.realpath(path) == os.path.realpath(args.out):
            raise InputError(f"--out must be another folder than {path}, whose documents are read")
    check_folder(args.out)


def _update(args: argparse.Namespace) -> int:
    """Build the index, or update an existing one, which encodes only new and changed documents.

    Documents of the index that are not in the given folders stay, because an index may be filled from
    several folders in turn; --prune removes them, unless they may be in what could not be read.
    """
    options = {
        name: str(getattr(args, name))
        for name in ("encoder", "passages", "follow_links", "max_bytes", "exclude")
    }
    known = None if is_database(args.out) else KnownFiles(args.out, options)
    documents, problems = read_given(args, known.is_unchanged if known else None)
    problems.show_files()
    if args.strict and problems.count:
        problems.show()
        raise InputError("not everything could be read, so with --strict nothing was indexed")
    unchanged = known.ids if known else set()
    given = unchanged | {document.id for document in documents}
    empty = {document.id for document in documents if not document.text.strip()}
    if len(empty) == len(documents) and not unchanged:
        if problems.show():
            return 1
        raise InputError(f"{_named(args.paths)}: every document is empty, so there is nothing to index")
    removed: list[str] = []
    if known and known.summary.get("interrupted"):
        warn(f"going on: {len(unchanged):,} documents are in the index, {len(documents):,} are left")
    if known and not documents and not (args.prune and set(known.summary["ids"]) - given):
        summary, gone = known.summary, sorted(set(known.summary["ids"]) - given)
    else:
        encoder = load_encoder(args.encoder, device=args.device)
        if known:
            empty |= set(known.summary.get("empty_documents", ())) & unchanged
        write = _in_database if known is None else _in_folder
        try:
            index, gone, removed = write(args, encoder, documents, given, problems)
        except _Interrupted as stop:
            if known:
                files = [report for report in problems.files if stop.ids.issuperset(report.documents)]
                known.save(files, {**_summary(args, stop.index, encoder, empty), "interrupted": True})
            warn(
                f"{len(stop.ids):,} of {len(documents):,} documents are indexed and stay in {args.out}; "
                "the same command goes on with the others"
            )
            raise
        summary = _summary(args, index, encoder, empty)
        if known:
            known.save(problems.files, summary)
    _report(args, summary, gone, removed, problems)
    return problems.show()


class _Interrupted(KeyboardInterrupt):
    """The user interrupted it. index: with what was done until then. ids: of the documents done."""

    def __init__(self, index: HybridIndex | DatabaseIndex, ids: set[str]) -> None:
        super().__init__()
        self.index, self.ids = index, ids


def _add(index: HybridIndex | DatabaseIndex, documents: list[Document], save: Callable[[], object]) -> None:
    """Add documents, and save the index every half a minute; a log that is no terminal then gets a line.

    Raises _Interrupted, with the index saved, if it is interrupted after the first documents.
    """
    done: set[str] = set()
    saved = time.monotonic()
    try:
        with progress_bar(
            shown=is_terminal("stderr"), total=len(documents), desc="indexing", unit="document"
        ) as progress:
            for batch in in_batches(documents, _CHARACTERS):
                index.add(batch)
                done.update(document.id for document in batch)
                progress.update(len(batch))
                if time.monotonic() - saved >= _SECONDS and len(done) < len(documents):
                    save()
                    saved = time.monotonic()
                    if not is_terminal("stderr"):
                        warn(f"{len(done):,} of {len(documents):,} documents are indexed")
    except KeyboardInterrupt as stop:
        if not done:
            raise
        save()
        raise _Interrupted(index, done) from stop


def _in_folder(
    args: argparse.Namespace,
    encoder: Encoder,
    documents: list[Document],
    given: set[str],
    problems: Problems,
) -> tuple[HybridIndex | DatabaseIndex, list[str], list[str]]:
    """The index, the ids in it of documents that were not given, and those of them that were removed."""
    if not has_index(args.out):
        _ = encoder.dimension  # an encoder that cannot be loaded fails here, before the folder is made
    with HybridIndex.lock(args.out):
        if has_index(args.out):
            options = {"passages": args.passages} if args.passages != HybridSettings.passages else {}
            index = HybridIndex.load(args.out, encoder, **options)
        else:
            index = HybridIndex(encoder, passages=args.passages)
        _add(index, documents, lambda: index.save(args.out))
        gone, removed = _prune(args, index, given, problems)
        index.save(args.out)
    return index, gone, removed


def _in_database(
    args: argparse.Namespace,
    encoder: Encoder,
    documents: list[Document],
    given: set[str],
    problems: Problems,
) -> tuple[HybridIndex | DatabaseIndex, list[str], list[str]]:
    """As `_in_folder`, for a database, which keeps each document as it is added."""
    options = {"passages": args.passages} if args.passages != HybridSettings.passages else {}
    index = DatabaseIndex(args.out, encoder, **options)
    _add(index, documents, lambda: None)
    gone, removed = _prune(args, index, given, problems)
    index.optimize()
    return index, gone, removed


def _prune(
    args: argparse.Namespace, index: HybridIndex | DatabaseIndex, given: set[str], problems: Problems
) -> tuple[list[str], list[str]]:
    """The ids in an index of documents that were not given, and those of them that --prune removed."""
    gone = sorted(set(index.document_ids) - given)
    removed: list[str] = []
    if args.prune:
        removed = proven_gone(gone, args.paths, problems.files, all_read=not problems.count)
        index.delete(removed)
    return gone, removed


def _summary(
    args: argparse.Namespace, index: HybridIndex | DatabaseIndex, encoder: Encoder, empty: set[str]
) -> dict[str, Any]:
    return {
        "index": index.engine.location if isinstance(index, DatabaseIndex) else str(args.out),
        "documents": len(index.document_ids),
        "sentences": len(index),
        "encoder": encoder.name,
        "ids": list(index.document_ids),
        "empty_documents": sorted(empty.intersection(index.document_ids)),
    }


def _report(
    args: argparse.Namespace, summary: dict[str, Any], gone: list[str], removed: list[str], problems: Problems
) -> None:
    for identifier in summary["empty_documents"]:
        warn(f"warning: {identifier}: the document is empty")
    for identifier in removed:
        warn(f"removed {identifier}: it is not in {_named(args.paths)}")
    if left := [identifier for identifier in gone if identifier not in set(removed)]:
        named = f"note: {len(left)} of the index's documents, such as {left[0]},"
        if args.prune:
            warn(f"{named} may be in what could not be read, so they stay")
        else:
            warn(f"{named} are not in {_named(args.paths)}; use --prune to remove them")
    if args.json:
        shown = {name: value for name, value in summary.items() if name != "ids"}
        outcome = {"removed_documents": removed, "unreadable": problems.messages}
        print_json({**shown, **outcome, "files": [asdict(report) for report in problems.files]})
    else:
        show(
            f"{summary['index']}: {summary['documents']} documents, {summary['sentences']} sentences, "
            f"{summary['encoder']}"
        )


def _named(paths: list[Path]) -> str:
    return ", ".join(map(str, paths))


def _passages(text: str) -> str:
    """Parse --passages. Any name that is not built in must be the folder of a trained model."""
    if PASSAGES.fullmatch(text) or text == "sage-minilm" or Path(text).is_dir():
        return text
    raise argparse.ArgumentTypeError(
        f'expected sentences, paragraphs, segments, a size like "200 tokens", or the folder of a trained '
        f"model, got {text!r}"
    )
