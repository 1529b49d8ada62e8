"""Output of the commands: JSON for machines, aligned lines for people, and files.

Everything that people read is written by `show` and `warn`: texts, file names and answers may hold
characters that a terminal would obey.
"""

import argparse
import json
import os
import stat
import sys
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from precise_rag.errors import InputError
from precise_rag.redaction import visible, visible_line
from precise_rag.types import Selection

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Subparsers = Any

_LONGEST_ERROR = 2_000


def shorten(text: str, length: int) -> str:
    """Return `text`, cut to at most `length` characters with an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def show(text: object = "") -> None:
    """Print text, with characters that a terminal would obey written as escapes."""
    show_styled(visible(str(text)))


def show_styled(text: str) -> None:
    """Print text whose escapes are ours and whose other parts went through `visible`."""
    if sys.stdout is not None:
        try:
            _write(sys.stdout, text)
        except OSError as error:
            raise _of_output(error) from error


def warn(message: object) -> None:
    """Print one line on standard error; nothing if that is closed."""
    _write_error(shorten(visible_line(f"precise: {message}"), _LONGEST_ERROR))


def rescue(text: str) -> None:
    """Print, on standard error, all of a text that standard output did not take."""
    _write_error(visible(text))


def _write_error(text: str) -> None:
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            _write(sys.stderr, text)
            sys.stderr.flush()


def is_terminal(name: Literal["stdin", "stdout", "stderr"]) -> bool:
    """Whether a standard stream is open and a terminal."""
    stream = getattr(sys, name)
    return stream is not None and stream.isatty()


def flush() -> None:
    """Write out what was printed. Raises OSError if it cannot be written."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except OSError as error:
            raise _of_output(error) from error


def drop_unwritten() -> None:
    """Drop output that cannot be written, so that the interpreter does not try again when it ends."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """Print a value as one line of JSON, in ASCII."""
    show_styled(json.dumps(value))


def make_folder(path: Path) -> None:
    """Make a folder if it is not there. Raises InputError if it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(
            f"the folder {path} cannot be made: {getattr(error, 'strerror', None) or error}"
        ) from error


def check_folder(path: Path) -> None:
    """Raises InputError if `path` is not a folder that can be written, or made; nothing stays."""
    nearest = path
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be written: {getattr(error, 'strerror', None) or error}; name another folder"
        ) from error


def check_writable(path: Path) -> None:
    """Raises InputError if `path` is not a file that `write_file` can write."""
    try:
        with tempfile.TemporaryFile(dir=_target(path).parent):
            pass
    except (OSError, ValueError) as error:
        raise _cannot_write(path, error) from error


def write_file(path: Path, text: str) -> None:
    """Write a text file, replacing the old one in one step; lone surrogates become escapes.

    Raises InputError if it cannot be written; an old file stays as it was.
    """
    try:
        target = _target(path)
        new = _beside(target)
        try:
            new.write_bytes(text.encode("utf-8", "backslashreplace"))
            if target.exists():
                new.chmod(stat.S_IMODE(target.stat().st_mode))
            os.replace(new, target)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
    except (OSError, ValueError) as error:
        raise _cannot_write(path, error) from error


def temporary_page(page: str) -> Path:
    """Write an HTML page to a new folder for temporary files, and return its path."""
    path = Path(tempfile.mkdtemp(prefix="precise-")) / "trace.html"
    write_file(path, page)
    return path


def _target(path: Path) -> Path:
    """The file that a link leads to. Raises OSError if there is something else."""
    target = Path(os.path.realpath(path))
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise OSError("it is a folder; give a file")
    if not stat.S_ISREG(mode):
        raise OSError("it is a pipe, a device or a link without an end; give a file")
    return target


def _beside(target: Path) -> Path:
    return target.with_name(f".{uuid.uuid4().hex}.tmp")


def _cannot_write(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}")


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _of_output(error: OSError) -> OSError:
    """The same error, which then says where it happened."""
    return error if isinstance(error, BrokenPipeError) else OSError(error.errno, error.strerror, "output")


def selection_record(selection: Selection) -> list[dict[str, Any]]:
    """Return the decisions of a selection as plain values."""
    return [
        {
            "rank": decision.rank,
            "kept": decision.kept,
            "reason": decision.reason,
            "score": decision.candidate.score,
            "score_scale": decision.candidate.score_scale,
            "scores": dict(decision.candidate.scores),
            "doc_id": decision.candidate.doc_id,
            "start": decision.candidate.start,
            "end": decision.candidate.end,
            "n_tokens": decision.candidate.n_tokens,
            "text": decision.candidate.text,
        }
        for decision in selection.decisions
    ]


def print_selection(selection: Selection, *, dropped: int = 3, width: int = 72) -> None:
    """Print one line per kept candidate, then the cut with its reason and the first dropped candidates.

    dropped: candidates to print after the cut. width: characters of text per line.
    """
    decisions = selection.decisions
    last = max((decision.rank for decision in decisions if decision.kept), default=0)
    after = [d for d in decisions if d.rank > last and not d.reason.startswith("repeats")][:dropped]
    for rank, candidate, kept, reason in [*(d for d in decisions if d.kept), *after]:
        if after and rank == after[0].rank:
            show(f"  ── cut after rank {last}: {reason}")
        text = shorten(" ".join(candidate.text.split()), width)
        show(f"  {rank:>3} {'keep' if kept else 'drop'} {candidate.score:6.3f}  {text:<{width}}  {reason}")
    repeated = sum(not d.kept and d.reason.startswith("repeats") for d in decisions)
    others = sum(not d.kept for d in decisions) - len(after) - repeated
    if others or repeated:
        show(f"      … and {others} more dropped, {repeated} repetitions left out")


def count_kept_tokens(selection: Selection) -> int:
    """Return the tokens of the kept candidates, counted by the index."""
    return sum(candidate.n_tokens or 0 for candidate in selection.kept)
