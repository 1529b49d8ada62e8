"""Reading the documents that a command is given: one that cannot be read does not stop the others."""

import argparse
from dataclasses import dataclass, field
from pathlib import Path

from precise_rag.cli.output import warn
from precise_rag.documents import MAX_FILE_BYTES, read_documents
from precise_rag.index.databases import is_database
from precise_rag.types import Document

_MOST_NAMED = 100


@dataclass
class Problems:
    """What could not be read; the first problems are kept word for word, the others counted."""

    messages: list[str] = field(default_factory=list)
    count: int = 0

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
        "--max-bytes",
        type=int,
        metavar="N",
        default=MAX_FILE_BYTES,
        help="largest size of a file, also after unpacking (default: %(default)s)",
    )


def read_given(args: argparse.Namespace) -> tuple[list[Document], Problems]:
    """Read the documents of the paths that a command was given."""
    problems = Problems()
    documents = read_documents(
        *args.paths, follow_links=args.follow_links, max_bytes=args.max_bytes, on_error=problems.add
    )
    return list(documents), problems
