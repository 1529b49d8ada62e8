"""Output of the commands: JSON for machines, and aligned lines for people.

Everything that people read is written by `show` and `warn`: texts, file names and answers may hold
characters that a terminal would obey.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO
from unicodedata import east_asian_width

from precise_rag.context import Passage
from precise_rag.errors import InputError
from precise_rag.facts import place_name
from precise_rag.redaction import visible, visible_line
from precise_rag.types import Selection

_BAR = "| "
_LONGEST_ERROR = 2_000
_DROPPED, _WIDTH = 3, 72


def shorten(text: str, length: int) -> str:
    """Return `text`, cut to at most `length` characters with an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def barred(text: str) -> str:
    """Return what a document or a model says, with a bar before each line: none passes for one of ours."""
    return "\n".join(f"{_BAR}{line}" for line in visible(text).split("\n"))


def show(text: object = "") -> None:
    """Print text, with characters that a terminal would obey written as escapes.

    A terminal would begin a line of its own in a long one: what is too long goes on behind a bar instead.
    """
    for line in visible(str(text)).split("\n"):
        if is_terminal(sys.stdout):
            line = f"\n{_BAR}".join(_in_columns(line.expandtabs(), shutil.get_terminal_size().columns))
        print(line)


def _in_columns(line: str, columns: int) -> Iterator[str]:
    """Cut a line where a terminal would, and two columns earlier after the first: for the bar."""
    first = used = 0
    for place, character in enumerate(line):
        width = 2 if east_asian_width(character) in "WF" else 1
        if used + width > columns:
            yield line[first:place]
            first, used = place, len(_BAR)
        used += width
    yield line[first:]


def warn(message: object) -> None:
    """Print one line on standard error; nothing if that is closed."""
    with suppress(OSError, ValueError):
        print(shorten(visible_line(f"precise: {message}"), _LONGEST_ERROR), file=sys.stderr, flush=True)


def show_problems(problems: Sequence[InputError]) -> int:
    """Name, on standard error, what could not be read. Returns the exit code: 1 if there is anything."""
    for problem in problems:
        warn(problem)
    return 1 if problems else 0


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is open and a terminal."""
    return stream is not None and stream.isatty()


def print_json(value: Any) -> None:
    """Print a value as one line of JSON, in ASCII; a number that is none is null."""
    print(json.dumps(json.loads(json.dumps(value), parse_constant=lambda _: None)))


def check_writable(path: Path) -> None:
    """Raise InputError if a file cannot be written in this place."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} cannot be written: it is no regular file")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def source_of(passage: Passage) -> str:
    """Return where a passage stands, as one line: its document, its page or time, and the titles above it."""
    place = ", ".join(filter(None, (passage.doc_id, place_name(passage))))
    return visible_line(f"{place}: {' › '.join(passage.titles)}" if passage.titles else place)


def print_selection(selection: Selection) -> None:
    """Print one line per kept candidate, then the cut with its reason and the first dropped candidates."""
    decisions = selection.decisions
    last = max((decision.rank for decision in decisions if decision.kept), default=0)
    after = [d for d in decisions if d.rank > last and not d.reason.startswith("repeats")][:_DROPPED]
    for rank, candidate, kept, reason in [*(d for d in decisions if d.kept), *after]:
        if after and rank == after[0].rank:
            show(f"  ── cut after rank {last}: {reason}")
        text = shorten(" ".join(candidate.text.split()), _WIDTH)
        show(f"  {rank:>3} {'keep' if kept else 'drop'} {candidate.score:6.3f}  {text:<{_WIDTH}}  {reason}")
    others = sum(not decision.kept for decision in decisions) - len(after)
    if others:
        show(f"      … and {others} more dropped")


def count_kept_tokens(selection: Selection) -> int:
    """Return the tokens of the kept candidates, counted by the index."""
    return sum(candidate.n_tokens or 0 for candidate in selection.kept)
