"""Which files there are at a path: those to read, and those that are left out and why."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

from precise_rag.documents.kinds import READABLE, kind_of
from precise_rag.documents.opening import reason
from precise_rag.errors import InputError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Report = Callable[[InputError], object]
"""Takes the error of a file or line that is left out."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of a file or folder.

    path: its path.
    status: "read", "skipped" by a rule, or "failed".
    why: the reason for "skipped" and "failed", or a remark such as the encoding.
    documents: ids of its documents.
    """

    path: str
    status: Literal["read", "skipped", "failed"]
    why: str = ""
    documents: tuple[str, ...] = ()


OnFile = Callable[[FileReport], object]


def document_files(
    path: Path,
    *,
    follow_links: bool = False,
    on_error: Report | None = None,
    on_file: OnFile | None = None,
    suffixes: Sequence[str] | None = None,
) -> Iterator[tuple[Path, str]]:
    """Find the files to read at a path: itself, those in it if it is a folder, or those of a pattern.

    on_file: is called with each file that is skipped: hidden ones, those that a .gitignore names, and those
        of other kinds. suffixes: the endings to read; default: every kind that can be read.
    Returns an iterator over (file, name within the folder), sorted by path.
    Raises InputError, or calls `on_error`, as `read_documents`; a link that is given itself is followed.
    """
    report = on_error or raise_error
    walk = _Walk(path, follow_links, report, on_file or (lambda report: None), suffixes)
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError) and not path.is_symlink()
        if missing and glob.has_magic(str(path)):
            yield from walk.matches()
        else:
            report(InputError(f"{path}: {'no such file or folder' if missing else reason(error, path)}"))
        return
    if stat.S_ISDIR(mode):
        yield from walk.files()
    elif walk.reads(path.name):
        yield path, path.name
    else:
        report(InputError(f"{path}: cannot read this kind of file; expected {walk.readable}"))


class _Walk:
    """One folder or pattern, and the rules by which its files are chosen."""

    def __init__(
        self,
        root: Path,
        follow_links: bool,
        report: Report,
        on_file: OnFile,
        suffixes: Sequence[str] | None,
    ) -> None:
        self._root, self._follow_links = root, follow_links
        self._report_to, self._on_file, self._suffixes = report, on_file, suffixes
        self._inside = Path(os.path.realpath(root))
        self._found = 0
        self._ignoring: dict[Path, GitIgnoreSpec] = {}

    @property
    def readable(self) -> str:
        return READABLE if self._suffixes is None else f"files ending in {', '.join(self._suffixes)}"

    def reads(self, name: str) -> bool:
        return kind_of(name) is not None if self._suffixes is None else name.endswith(tuple(self._suffixes))

    def matches(self) -> Iterator[tuple[Path, str]]:
        """The files that a pattern such as docs/**/*.md names."""
        parts = self._root.parts
        fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
        base = Path(*parts[:fixed])
        for name in sorted(glob.glob(str(self._root), recursive=True)):
            file = Path(name)
            if file.is_file():
                self._found += 1
                if self.reads(file.name):
                    yield file, file.relative_to(base).as_posix()
                else:
                    self._skip(file, f"this kind is not read ({file.suffix or 'no ending'})")
        if not self._found:
            self._report_to(InputError(f"{self._root}: no file matches this pattern"))

    def files(self) -> Iterator[tuple[Path, str]]:
        """The files in the folder, by path; each folder is entered once."""
        self._read_rules_above()
        entered: set[tuple[int, int]] = set()
        waiting = [self._root]
        while waiting:
            path = waiting.pop()
            try:
                status = os.stat(path)
            except OSError as error:
                if self.reads(path.name) or not path.is_symlink():
                    self._report(InputError(f"{path}: {reason(error, path)}"))
                continue
            try:
                if self._is_chosen(path, status, entered, waiting):
                    self._found += 1
                    yield path, path.relative_to(self._root).as_posix()
            except InputError as error:
                self._report(error)
            except OSError as error:
                self._report(InputError(f"{path}: {reason(error, path)}"))
        if not self._found:
            self._report(InputError(f"{self._root}: nothing to read; expected {self.readable}"))

    def _is_chosen(
        self, path: Path, status: os.stat_result, entered: set[tuple[int, int]], waiting: list[Path]
    ) -> bool:
        """Whether a path is a file to read; a folder is entered, and what is left out is reported."""
        is_folder = stat.S_ISDIR(status.st_mode)
        if path != self._root and (why := self._ignored(path, is_folder)):
            self._skip(path, why)
        elif is_folder:
            place = (status.st_dev, status.st_ino)
            if place not in entered and self._may_enter(path):
                entered.add(place)
                self._read_rules(path)
                waiting.extend(path / name for name in sorted(os.listdir(path), reverse=True))
        elif self.reads(path.name):
            self._check_link(path)
            return True
        else:
            self._skip(path, f"this kind is not read ({path.suffix or 'no ending'})")
        return False

    def _report(self, error: InputError) -> None:
        self._found += 1
        self._report_to(error)

    def _skip(self, path: Path, why: str) -> None:
        self._on_file(FileReport(str(path), "skipped", why))

    def _read_rules_above(self) -> None:
        """Read the .gitignore files between the top of the repository and the folder."""
        above = [folder for folder in (self._inside, *self._inside.parents) if (folder / ".git").exists()]
        for folder in self._inside.parents if above else ():
            if folder.is_relative_to(above[0]):
                self._read_rules(folder)

    def _read_rules(self, folder: Path) -> None:
        file = folder / ".gitignore"
        if not file.is_file():
            return
        from pathspec import GitIgnoreSpec  # takes time, and few folders need it

        try:
            lines = file.read_text("utf-8", "replace")[:1_000_000].splitlines()
            self._ignoring[Path(os.path.realpath(folder))] = GitIgnoreSpec.from_lines(lines)
        except (OSError, ValueError) as error:
            self._report_to(InputError(f"{file}: cannot be read as rules ({error})"))

    def _ignored(self, path: Path, is_folder: bool) -> str:
        """Why a path is left out; empty if it is not."""
        if path.name.startswith("."):
            return "hidden"
        if is_folder and (path / "manifest.json").is_file() and any(path.glob("data-*")):
            return "an index"
        own = Path(os.path.realpath(path.parent)) / path.name
        for folder in own.parents:
            if folder in self._ignoring:
                name = own.relative_to(folder).as_posix() + ("/" if is_folder else "")
                found = self._ignoring[folder].check_file(name).include
                if found is not None:
                    return "ignored by .gitignore" if found else ""
        return ""

    def _may_enter(self, path: Path) -> bool:
        """Whether to read a folder here: one that a link leads to is read at its own place if inside."""
        if path == self._root or not path.is_symlink():
            return True
        self._check_link(path)
        return not self._is_within(path)

    def _check_link(self, path: Path) -> None:
        """Raises InputError if a path leads out of the given folder by a link that is not to be followed."""
        if path.is_symlink() and not self._follow_links and not self._is_within(path):
            raise InputError(
                f"{path}: is a link to {os.path.realpath(path)}, outside the given folder; "
                "to read it, pass follow_links=True (--follow-links)"
            )

    def _is_within(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self._inside)


def raise_error(error: InputError) -> NoReturn:
    """Raise an error; the default where no function takes it."""
    raise error
