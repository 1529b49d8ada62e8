"""A saved index: a manifest that names a file for each shard, replaced in one step.

    path/manifest.json            format, kind, encoder, settings; of each shard its file with size and
                                  checksum, and what is deleted in it
    path/data-….safetensors       documents, offsets and columns of a shard, memory-mapped on load
    path/precise-rag.lock         locked while a process writes

The file of a shard never changes: a save writes those of new shards, and keeps those of the others. New
files are complete and on disk before the manifest that names them replaces the old one. So a crash at any
moment leaves the old index or the new one. One process at a time writes; any number reads.
"""

import hashlib
import json
import logging
import os
import re
import stat
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import numpy.typing as npt

from precise_rag.checkpoints import new_file
from precise_rag.checks import as_path, check_number
from precise_rag.errors import (
    IndexChangedError,
    IndexFormatError,
    IndexLockedError,
    IndexWriteError,
    InputError,
    PreciseRagError,
)
from precise_rag.index.settings import check_made
from precise_rag.index.table import Part, Shard, Stored
from precise_rag.types import Document

MANIFEST, LOCK_FILE = "manifest.json", "precise-rag.lock"
WAIT = 10.0
"""Seconds that a writer waits for another one."""
_LONGEST_WAIT = 1e6
_PART = MANIFEST + ".part"
"""The manifest while it is written."""
_FORMAT, _VERSION = "precise-rag-index", 8
_DATA_NAME = re.compile(r"data-[0-9a-f]{32}\.safetensors")
_TYPES = {"U8": "u1", "I8": "i1", "U16": "<u2", "I32": "<i4", "I64": "<i8", "F32": "<f4", "F64": "<f8"}
"""The types of numbers that columns have, as safetensors and numpy name them."""
_KINDS = {np.dtype(name): kind for kind, name in _TYPES.items()}
_UNREADABLE = ValueError, ArithmeticError, LookupError, RecursionError, MemoryError
"""What files raise that no save has written."""
_log = logging.getLogger(__name__)
_held = threading.local()


def has_index(path: str | Path) -> bool:
    """Whether `path` has a manifest; a first save that was interrupted leaves a folder without one."""
    return os.path.lexists(Path(path) / MANIFEST)


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read the manifest of a saved index; its own checksum, "sha256", tells one saved state from another.

    Raises IndexFormatError if it is missing or damaged, or if this version cannot read it.
    """
    file = Path(path) / MANIFEST
    try:
        manifest = _parsed(file)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise IndexFormatError(f"{path} holds no index; `precise index` makes one in a new folder") from error
    except (OSError, *_UNREADABLE) as error:
        raise _not_opened(file, error) from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise IndexFormatError(f"{file} is not the manifest of a precise-rag index")
    if manifest.get("version") != _VERSION:
        raise IndexFormatError(
            f"{path} has index format {manifest.get('version')!r}, this version reads {_VERSION}; "
            "delete it and build it again, or install the version that wrote it"
        )
    try:
        if manifest.get("sha256") != _digest(manifest):
            raise ValueError("its checksum is wrong")
        check_made(manifest)
        if not isinstance(manifest.get("kind"), str):
            raise ValueError("it names no kind of index")
    except (ValueError, RecursionError) as error:
        raise _not_opened(file, error) from error
    return manifest


def read_index(path: str | Path) -> tuple[dict[str, Any], list[Part]]:
    """Manifest and parts of a saved index; arrays are memory-mapped, read-only.

    Raises IndexFormatError if the index is missing, damaged or of another version.
    """
    manifest = read_manifest(path)
    while True:
        try:
            return manifest, [_read_part(Path(path), entry) for entry in manifest["shards"]]
        except (OSError, TypeError, *_UNREADABLE) as error:
            newer = read_manifest(path)
            if newer == manifest:
                raise _not_opened(path, error) from error
            manifest = newer  # a writer replaced the index while it was read


@contextmanager
def locked(path: str | Path, timeout: float = WAIT) -> Iterator[None]:
    """Hold the folder of an index against other writers, to load, change and save it.

    with HybridIndex.lock(path):
        index = load_index(path)
        index.add(documents)
        index.save(path)

    path: the folder; made if it is not there. timeout: seconds to wait for another writer.
    A thread may hold it several times. The operating system frees it when the process that holds it ends.
    A folder that was made for an index which was not saved is removed again.
    Raises InputError if it holds other files and no index, IndexLockedError when the time is over, and
    IndexWriteError if it cannot be made.
    """
    path = as_path("path", path)
    check_number("timeout", timeout, least=0, most=_LONGEST_WAIT)
    with _write_errors(path):
        _data_files(path)
        is_new = not path.exists()
    held: set[tuple[int, str]] = _held.__dict__.setdefault("folders", set())
    folder = os.getpid(), os.path.realpath(path)  # a forked process does not hold what its parent holds
    if folder in held:
        yield
        return
    lock = filelock.FileLock(str(path / LOCK_FILE))
    try:
        while not lock.is_locked:
            path.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # the writer that made the folder has removed it
                lock.acquire(timeout=timeout, poll_interval=0.01)
    except filelock.Timeout as error:
        raise IndexLockedError(
            f"{path} is being written by another process or thread; "
            "wait until it has finished, then try again"
        ) from error
    except (OSError, NotImplementedError) as error:
        raise IndexWriteError(f"{path} cannot be locked for writing: {error}") from error
    held.add(folder)
    try:
        yield
    finally:
        held.remove(folder)
        is_new = is_new and not has_index(path)
        try:
            _remove([path / LOCK_FILE] if is_new else [])
        finally:
            lock.release()
        if is_new:
            with suppress(OSError):  # another writer is in it
                path.rmdir()


def write_index(
    path: str | Path, manifest: Mapping[str, Any], parts: Sequence[Part], *, known: set[str] | None = None
) -> None:
    """Save into a folder that is `locked`, replacing an index that is already there.

    known: checksums of manifests of which the folder must still have one; the new one is added. Default: any.
    Raises InputError if a document or a setting cannot be saved as it is; IndexChangedError if another
    writer has replaced the index; IndexWriteError.
    """
    path = as_path("path", path)
    with _write_errors(path):
        before = _data_files(path)
        present = None
        with suppress(IndexFormatError):  # a new folder, or a damaged index
            present = read_manifest(path)
        if known is not None and present is not None and present["sha256"] not in known:
            raise IndexChangedError(
                f"{path} was saved by another writer since this index was loaded; "
                "load it again, repeat the change and save, or save into another folder"
            )
        in_use = {(entry["file"], entry["sha256"]) for entry in present["shards"]} if present else set()
        new: list[Path] = []
        try:
            entries = [_entry(path, part, in_use, new) for part in parts]
            version = _write_manifest(path / _PART, {**manifest, "shards": entries})
            if known is not None:
                known.add(version)  # before it is replaced, so that an interruption cannot come between
            os.replace(path / _PART, path / MANIFEST)
        except BaseException:
            _remove([*new, path / _PART])
            raise
        for entry, part in zip(entries, parts, strict=True):
            part.shard.stored = Stored(path.resolve(), entry["file"], entry["sha256"], entry["size"])
        try:
            _flush_folder(path)
        except OSError as error:
            _log.warning("%s was saved, but the disk did not confirm it: %s", path, error)
        named = {entry["file"] for entry in entries}
        _remove([file for file in before if file.name not in named])


def _check_metadata(value: object, name: str = "") -> None:
    """Raise TypeError for values that JSON would give back as something else. name: the key above them."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not a string")
            _check_metadata(item, key)
    elif isinstance(value, list):
        for item in value:
            _check_metadata(item, name)
    elif not (value is None or isinstance(value, str | bool | int | float)):
        right = "a list" if isinstance(value, tuple | set | frozenset) else "a string or a number"
        raise TypeError(f"the {type(value).__name__} of {name!r} is not a JSON type; give {right}")


def _entry(path: Path, part: Part, in_use: set[tuple[str, str]], new: list[Path]) -> dict[str, Any]:
    """The entry of a part in the manifest; its shard is written if it is not in the folder yet."""
    stored = part.shard.stored
    if stored is None or stored.path != path.resolve() or (stored.file, stored.sha256) not in in_use:
        file = path / f"data-{uuid.uuid4().hex}.safetensors"
        new.append(file)
        stored = _write_shard(file, part.shard)
    deleted = [] if part.alive is None else np.flatnonzero(~part.alive).tolist()
    return {"file": stored.file, "sha256": stored.sha256, "size": stored.size, "deleted": deleted}


def _write_shard(file: Path, shard: Shard) -> Stored:
    """Write the file of a shard; safetensors' own writer would leave files of other names beside it."""
    lines = b"".join(map(document_line, shard.documents))
    arrays: dict[str, npt.NDArray[Any]] = {
        "documents": np.frombuffer(lines, dtype=np.uint8),
        "offsets": shard.offsets,
    }
    arrays |= {f"columns/{name}": column for name, column in shard.columns.items()}
    for owner, its in shard.derived.items():
        arrays |= {f"derived/{owner}/{name}": array for name, array in its.items()}
    header, end = {}, 0
    widest_first = sorted(arrays, key=lambda name: -arrays[name].itemsize)  # so that each is aligned
    for name in widest_first:
        begin, end = end, end + arrays[name].nbytes
        kind, shape = _KINDS[arrays[name].dtype], arrays[name].shape
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode("ascii")
    text += b" " * (-len(text) % 8)
    with new_file(file) as written:
        written.write(len(text).to_bytes(8, "little") + text)
        for name in widest_first:
            written.write(np.ascontiguousarray(arrays[name]).data)
        written.seek(0)
        digest = hashlib.file_digest(written, "sha256").hexdigest()
        return Stored(file.parent.resolve(), file.name, digest, written.tell())


def _read_part(path: Path, entry: Mapping[str, Any]) -> Part:
    if not _DATA_NAME.fullmatch(entry["file"]):
        raise ValueError(f"{entry['file']!r} is not the name of a data file")
    arrays = _read_arrays(path / entry["file"], entry)
    lines = arrays["documents"].tobytes().split(b"\n")[:-1]
    documents = [Document(**json.loads(line.decode("utf-8", "surrogatepass"))) for line in lines]
    columns: dict[str, npt.NDArray[Any]] = {}
    derived: dict[str, dict[str, npt.NDArray[Any]]] = {}
    for name, array in arrays.items():
        kind, *names = name.split("/")
        if kind == "columns":
            columns[names[0]] = array
        elif kind == "derived":
            derived.setdefault(names[0], {})[names[1]] = array
    stored = Stored(path.resolve(), entry["file"], entry["sha256"], entry["size"])
    shard = Shard(documents, arrays["offsets"], columns, {**derived}, stored)
    _check_shapes(shard)
    if not entry["deleted"]:
        return Part(shard)
    alive = np.ones(len(documents), dtype=np.bool_)
    alive[entry["deleted"]] = False
    return Part(shard, alive)


def _check_shapes(shard: Shard) -> None:
    """Raise ValueError unless the arrays of a shard are there, and as long as its documents have rows."""
    sizes, columns = np.diff(shard.offsets, prepend=0), shard.columns
    fits = len(sizes) == len(shard.documents) + 1 and sizes[0] == 0 <= sizes.min()
    for name, column in columns.items():
        stem, _, kind = name.rpartition(".")
        if kind != "values":
            fits = fits and len(column) == len(shard)
        else:
            lengths = columns[f"{stem}.lengths"]
            fits = fits and lengths.min(initial=0) >= 0 and len(column) == lengths.sum(dtype=np.float64)
    if not fits or (columns and {"spans", "n_tokens", "vectors"} - columns.keys()):
        raise ValueError("its arrays do not fit each other")


def _read_arrays(file: Path, entry: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a data file, mapped into memory. Raises ValueError if it is not the one of its entry."""
    _check_regular(file)
    data = np.memmap(file, dtype=np.uint8, mode="r")
    if len(data) != entry["size"]:
        raise ValueError(f"{file.name} has {len(data)} bytes, {entry['size']} expected")
    if hashlib.sha256(data.data).hexdigest() != entry["sha256"]:
        raise ValueError(f"the checksum of {file.name} is wrong")
    begin = 8 + int.from_bytes(data[:8].tobytes(), "little")
    arrays = {}
    for name, its in json.loads(data[8:begin].tobytes()).items():
        first, end = its["data_offsets"]
        arrays[name] = data[begin + first : begin + end].view(_TYPES[its["dtype"]]).reshape(its["shape"])
    return arrays


def document_line(document: Document) -> bytes:
    """Return a document as JSON, surrogates as they are: escapes would join a pair of them to a character."""
    try:
        metadata = dict(document.metadata)
        _check_metadata(metadata)
        record = {"id": document.id, "text": document.text, "metadata": metadata}
        return (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"document {document.id!r}: metadata cannot be saved as JSON: {error}") from error


def _write_manifest(file: Path, content: Mapping[str, Any]) -> str:
    """Write a manifest with its own checksum, and return that. Raises InputError if a setting is not JSON."""
    content = {"format": _FORMAT, "version": _VERSION, **content}
    try:
        digest = _digest(content)
        text = json.dumps({**content, "sha256": digest}, indent=1)
    except (TypeError, ValueError) as error:
        raise InputError(f"the settings of the index cannot be saved as JSON: {error}") from error
    with new_file(file) as written:
        written.write(text.encode("ascii"))
    return digest


def _digest(manifest: Mapping[str, Any]) -> str:
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()


def _parsed(file: Path) -> Any:
    """The JSON in a file. Raises OSError, ValueError or RecursionError if it cannot be read."""
    _check_regular(file)
    return json.loads(file.read_bytes())


def _not_opened(place: str | Path, error: Exception) -> IndexFormatError:
    """The error of an index that is damaged, or else of one that the system keeps back, and may be sound."""
    if isinstance(error, OSError) and error.errno and not isinstance(error, FileNotFoundError):
        return IndexFormatError(
            f"{place} cannot be read ({error}); check its permissions, or try again later"
        )
    return IndexFormatError(f"{place} is damaged ({error}); delete it and build it again")


def _check_regular(file: Path) -> None:
    """Raise OSError for a link, a folder, a pipe or a device."""
    if not stat.S_ISREG(os.lstat(file).st_mode):
        raise OSError(f"{file.name} is not a regular file")


def _data_files(path: Path) -> list[Path]:
    """The data files in `path`. Raises InputError for what no save makes, but for files beside an index."""
    if not os.path.lexists(path):
        return []
    if not path.is_dir():
        raise InputError(f"{path} is not a folder; give a folder for the index")
    with os.scandir(path) as entries:
        is_file = {entry.name: _is_plain(entry) for entry in entries}
    data = [name for name in is_file if _DATA_NAME.fullmatch(name)]
    known = {MANIFEST, _PART, LOCK_FILE, *data}
    others = [name for name, is_plain in is_file.items() if not is_plain or name not in known]
    if is_file.get(MANIFEST):
        is_ours = _is_our_manifest(path / MANIFEST, bool(data) and not others)
        others = [name for name in others if name in known] if is_ours else [*others, MANIFEST]
    if others:
        raise InputError(f"{path} holds other files ({others[0]!r}); give an empty or new folder")
    return [path / name for name in data]


def _is_plain(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file, and no link where one is opened to write: a lock would empty what it names."""
    if entry.name == LOCK_FILE and (its := entry.stat(follow_symlinks=False)).st_nlink > 1 and its.st_size:
        return False
    return entry.is_file(follow_symlinks=False)


def _is_our_manifest(file: Path, beside_data: bool) -> bool:
    """Whether a manifest is an index's; a damaged one is if it lies beside data files."""
    try:
        manifest = _parsed(file)
    except FileNotFoundError:
        return True  # another writer is clearing up
    except (ValueError, RecursionError, MemoryError):
        return beside_data
    return isinstance(manifest, dict) and manifest.get("format") == _FORMAT


def _remove(files: Sequence[Path]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink(missing_ok=True)


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except PreciseRagError:
        raise
    except (OSError, UnicodeError) as error:
        raise IndexWriteError(f"{path} cannot be written: {error}; an index there stays as it was") from error


def _flush_folder(path: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
