"""Reading the documents that a command is given: one that cannot be read does not stop the others."""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from precise_rag.cli.output import warn
from precise_rag.documents import MAX_FILE_BYTES, MAX_SECONDS, FileReport, read_documents, read_standard_input
from precise_rag.errors import InputError
from precise_rag.index.databases import is_database
from precise_rag.types import Document

_MOST_NAMED = 100
_SOME = 3
"""Skipped files that are named for each reason."""

STANDARD_INPUT = Path("-")


@dataclass
class Problems:
    """What became of the files; the first problems are kept word for word, the others counted."""

    messages: list[str] = field(default_factory=list)
    count: int = 0
    files: list[FileReport] = field(default_factory=list)

    def add(self, message: object) -> None:
        """Note one problem."""
        self.count += 1
        if len(self.messages) < _MOST_NAMED:
            self.messages.append(str(message))

    def show(self) -> int:
        """Name the problems on standard error. Returns the exit code: 1 if there are any."""
        for message in self.messages:
            warn(message)
        if self.count > len(self.messages):
            warn(f"{self.count - len(self.messages)} more files or lines could not be read")
        return 1 if self.count else 0

    def show_files(self) -> None:
        """Say on standard error how many files were skipped, and why, and which were read oddly."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for report in self.files:
            if report.status in ("skipped", "read") and report.why:
                reasons.setdefault((report.status, report.why), []).append(report.path)
        for (status, why), paths in reasons.items():
            more = ", …" if len(paths) > _SOME else ""
            named = f"{', '.join(paths[:_SOME])}{more}"
            warn(f"skipped {len(paths)}, {why}: {named}" if status == "skipped" else f"note: {named}: {why}")


def path_argument(text: str) -> Path:
    """Parse a path. An empty one, which a shell makes of an unset variable, is not the current folder."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("expected a path, got an empty text; for this folder give .")
    return Path(text)


def index_argument(text: str) -> Path | str:
    """Parse the place of an index: a folder, or the location of a database."""
    return text if is_database(text) else path_argument(text)


def add_reading_options(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the options that say which files are read."""
    parser.add_argument(
        "--follow-links",
        action="store_true",
        help="read symbolic links that lead out of a given folder (default: they are errors)",
    )
    parser.add_argument(
        "--exclude",
        metavar="PATTERN",
        action="append",
        default=[],
        help="skip files and folders that match, as in .gitignore; may be given several times",
    )
    parser.add_argument(
        "--max-bytes",
        type=int,
        metavar="N",
        default=MAX_FILE_BYTES,
        help="largest size of a file, also after unpacking (default: %(default)s)",
    )


def add_bad_file_options(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the options of commands that go on after a bad file."""
    parser.add_argument(
        "--max-seconds",
        type=float,
        metavar="S",
        default=MAX_SECONDS,
        help="most time for all files that cannot be converted; after it the others that need the converter "
        "are not read either (default: %(default)g)",
    )


def read_given(
    args: argparse.Namespace, skip: Callable[[Path, str], bool] | None = None
) -> tuple[list[Document], Problems]:
    """Read the documents of the paths that a command was given; "-" is standard input.

    skip: as for `read_documents`.
    """
    documents, problems = iterate_given(args, skip)
    return list(documents), problems


def iterate_given(
    args: argparse.Namespace, skip: Callable[[Path, str], bool] | None = None
) -> tuple[Iterator[Document], Problems]:
    """As `read_given`, one document at a time; the problems are complete after the last one."""
    if STANDARD_INPUT in args.paths and sys.stdin is None:
        raise InputError("standard input is closed, so no document can be read from it")
    problems = Problems()
    return _given(args, skip, problems), problems


def _given(
    args: argparse.Namespace, skip: Callable[[Path, str], bool] | None, problems: Problems
) -> Iterator[Document]:
    if STANDARD_INPUT in args.paths:
        yield read_standard_input(sys.stdin.buffer, args.max_bytes)
    yield from read_documents(
        *(path for path in args.paths if path != STANDARD_INPUT),
        follow_links=args.follow_links,
        max_bytes=args.max_bytes,
        max_seconds=args.max_seconds,
        on_error=problems.add,
        on_file=problems.files.append,
        skip=skip,
        exclude=args.exclude,
    )
