"""Which files there are at a path: those to read, and those that are left out and why."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from precise_rag.documents.ignoring import IgnoreRules, fits_part, part_of
from precise_rag.documents.kinds import READABLE, kind_of
from precise_rag.documents.opening import read_bytes, reason
from precise_rag.errors import InputError

_MOST_RULES = 2**16
"""Bytes of a .gitignore file: every file in the folder is compared with every rule."""
_IGNORED = "ignored by .gitignore"
_EXCLUDED = "excluded"

Report = Callable[[InputError], object]
"""Takes the error of a file or line that is left out."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """Whether a file or folder was read, skipped or failed.

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
    exclude: Sequence[str] = (),
) -> Iterator[tuple[Path, str]]:
    """Find the files to read at a path: a file, the files in a folder, or the files that match a pattern.

    on_file: is called with each file that is skipped: hidden ones, those that a .gitignore names, and those
        of other kinds. suffixes: the endings to read; default: every kind that can be read.
    exclude: patterns, as in a .gitignore file, of files and folders below `path` to skip.
    Returns an iterator over (file, name within the folder), sorted by path.
    Raises InputError, or calls `on_error`, as `read_documents`; a link that is given itself is followed.
    """
    report = on_error or raise_error
    walk = _Walk(path, follow_links, report, on_file or (lambda report: None), suffixes, exclude)
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
        exclude: Sequence[str],
    ) -> None:
        self._root, self._follow_links = root, follow_links
        self._report_to, self._on_file, self._suffixes = report, on_file, suffixes
        self._inside = Path(os.path.realpath(root))
        self._found = 0
        self._excluded = IgnoreRules("\n".join(exclude))
        self._ignoring: dict[Path, IgnoreRules] = {}
        self._is_below_ignored = False

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
        self._inside = Path(os.path.realpath(base))
        try:
            pattern = [part if part == "**" else part_of(part) for part in parts[fixed:]]
        except ValueError as error:
            self._report(InputError(f"{self._root}: is no pattern: {error}"))
            return
        for file in self._matching(base, pattern):
            self._found += 1
            if self._is_excluded(file.relative_to(base)):
                self._skip(file, _EXCLUDED)
                continue
            if not self.reads(file.name):
                self._skip(file, f"this kind is not read ({file.suffix or 'no ending'})")
                continue
            try:
                self._check_link(file)
            except InputError as error:
                self._report(error)
            else:
                yield file, file.relative_to(base).as_posix()
        if not self._found:
            self._report_to(InputError(f"{self._root}: no file matches this pattern"))

    def _matching(self, base: Path, pattern: Sequence[re.Pattern[str] | str]) -> Iterator[Path]:
        """The files that fit a pattern, by path; a folder is entered once, however many ways fit it."""
        entered: set[tuple[int, int]] = set()
        waiting = [(base, _open({0}, pattern))]
        while waiting:
            path, places = waiting.pop()
            try:
                status = os.stat(path)
                if not stat.S_ISDIR(status.st_mode):
                    if len(pattern) in places:
                        yield path
                    continue
                place = (status.st_dev, status.st_ino)
                if place in entered or not (path == base or self._may_enter(path)):
                    continue
                entered.add(place)
                below = (
                    (name, _after(places, pattern, name)) for name in sorted(os.listdir(path), reverse=True)
                )
                waiting.extend((path / name, after) for name, after in below if after)
            except InputError as error:
                self._report(error)
            except OSError as error:
                if not path.is_symlink():
                    self._report(InputError(f"{path}: {reason(error, path)}"))

    def files(self) -> Iterator[tuple[Path, str]]:
        """The files in the folder, by path; each folder is entered once."""
        entered: set[tuple[int, int]] = set()
        waiting = [self._root]
        try:
            self._read_rules_above()
        except InputError as error:
            waiting = []
            self._report(error)
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
        """Whether a path is a file to read; a folder is entered, and a path that is left out is reported."""
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
        above = [
            folder for folder in (self._inside, *self._inside.parents) if os.path.exists(folder / ".git")
        ]
        for folder in self._inside.parents if above else ():
            if folder.is_relative_to(above[0]):
                self._read_rules(folder)
                if (rules := self._ignoring.get(folder)) is not None:
                    names = self._inside.relative_to(folder).parts
                    ends = range(1, len(names) + 1)
                    self._is_below_ignored |= any(rules.check(names[:end], True) for end in ends)

    def _read_rules(self, folder: Path) -> None:
        """Read the .gitignore of a folder. Raises InputError if it cannot be: the folder is not read then."""
        file = folder / ".gitignore"
        if os.path.isfile(file):
            try:
                if os.path.getsize(file) > _MOST_RULES:
                    raise InputError(f"{file}: has more than {_MOST_RULES:,} bytes; shorten it")
                rules = read_bytes(file, _MOST_RULES).decode("utf-8-sig", "surrogateescape")
            except (InputError, OSError) as error:
                raise InputError(
                    f"{error}. It says which files of {folder} to leave out, so none is read"
                ) from error
            self._ignoring[Path(os.path.realpath(folder))] = IgnoreRules(rules)

    def _ignored(self, path: Path, is_folder: bool) -> str:
        """Why a path is left out; empty if it is not."""
        if path.name.startswith("."):
            return "hidden"
        if self._excluded.check(path.relative_to(self._root).parts, is_folder):
            return _EXCLUDED
        if self._is_below_ignored:
            return _IGNORED
        if is_folder and (path / "manifest.json").is_file() and any(path.glob("data-*")):
            return "an index"
        if not self._ignoring:
            return ""
        own = Path(os.path.realpath(path.parent)) / path.name
        for folder in own.parents:
            if folder in self._ignoring:
                names = own.parts[len(folder.parts) :]
                is_ignored = self._ignoring[folder].check(names, is_folder)
                if is_ignored is not None:
                    return _IGNORED if is_ignored else ""
        return ""

    def _is_excluded(self, path: Path) -> bool:
        """Whether a file that a pattern names, or a folder above it, is excluded."""
        parts = path.parts
        return any(self._excluded.check(parts[:end], end < len(parts)) for end in range(1, len(parts) + 1))

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


def _open(places: set[int], pattern: Sequence[re.Pattern[str] | str]) -> set[int]:
    """The places in a pattern, and those after a `**`, which no folder at all fits, too."""
    more = {place + 1 for place in places if place < len(pattern) and pattern[place] == "**"}
    return places | _open(more, pattern) if more - places else places


def _after(places: set[int], pattern: Sequence[re.Pattern[str] | str], name: str) -> set[int]:
    """The places in a pattern after a name, of those before it."""
    after = set()
    for place in places:
        part = pattern[place] if place < len(pattern) else ""
        shown = not name.startswith(".")
        if part == "**":
            after |= {place} if shown else set()
        elif fits_part(part, name) and (shown or _begins_with_dot(part)):
            after.add(place + 1)
    return _open(after, pattern)


def _begins_with_dot(part: re.Pattern[str] | str) -> bool:
    return part.startswith(".") if isinstance(part, str) else part.pattern.startswith("\\.")


def raise_error(error: InputError) -> NoReturn:
    """Raise an error; the default where no function takes it."""
    raise error
