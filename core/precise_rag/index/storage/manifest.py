"""The manifest of a saved index: what the index is, and the size, shape and checksum of each file."""

import hashlib
import json
import math
import os
import re
from pathlib import Path
from typing import Any

from precise_rag.errors import IndexFormatError, InputError
from precise_rag.index.storage.files import open_regular
from precise_rag.index.storage.settings import check_made

MANIFEST, MANIFEST_PART, SEGMENT = "manifest.json", "manifest.json.part", "segment.json"
"""The manifest of an index, the same while it is written, and what is in a data folder."""
FORMAT = "precise-rag-index"
VERSION = 4
DATA_NAME = re.compile(r"data-[0-9a-f]{32}")
"""Names of data folders."""
_MOST_BYTES = 2**31
"""A larger manifest is not read."""


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read the manifest of a saved index.

    Raises IndexFormatError if it is missing, or if this version cannot read it.
    """
    file = Path(path) / MANIFEST
    try:
        manifest = parse_manifest(file)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise IndexFormatError(f"{path} holds no index; build one and save it there") from error
    except (OSError, ValueError, RecursionError) as error:
        raise IndexFormatError(f"{file} cannot be read ({error}); build the index again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise IndexFormatError(f"{file} is not the manifest of a precise-rag index")
    version = manifest.get("version")
    if type(version) is not int or version != VERSION:
        raise IndexFormatError(
            f"{path} has index format {version!r}, this version reads {VERSION}; "
            "build the index again or install the version that wrote it"
        )
    try:
        _check_manifest(manifest)
    except (ValueError, RecursionError) as error:
        raise IndexFormatError(f"{file} is damaged ({error}); build the index again") from error
    return manifest


def has_index(path: str | Path) -> bool:
    """Whether `path` has a manifest; a first save that was interrupted leaves a folder without one."""
    return os.path.lexists(Path(path) / MANIFEST)


def parse_manifest(file: Path) -> Any:
    """Read the JSON of a manifest without checking its content.

    Raises OSError or ValueError if it cannot be read, and RecursionError if it is nested too deeply.
    """
    with open_regular(file) as opened:
        if os.fstat(opened.fileno()).st_size > _MOST_BYTES:
            raise ValueError("it is too large")
        text = opened.read(_MOST_BYTES).decode("utf-8", "surrogatepass")
    return json.loads(text, parse_float=_finite, parse_constant=_finite)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a number that a manifest may hold")
    return value


def version_of(manifest: dict[str, Any]) -> str:
    """The identity of a saved state of an index."""
    return str(manifest["sha256"])


def read_segment(folder: Path, entry: dict[str, Any]) -> dict[str, Any]:
    """Read a data folder; entry: the segment's in the manifest of its index.

    Raises OSError or ValueError if it is not what the manifest names.
    """
    files = parse_manifest(folder / SEGMENT)
    if not isinstance(files, dict) or files.get("sha256") != entry["sha256"]:
        raise ValueError(f"{folder.name} is not the one that belongs to the index")
    _check_entries(files)
    return files


def _check_manifest(manifest: dict[str, Any]) -> None:
    """Raise ValueError for content that no save writes."""
    if not isinstance(manifest.get("kind"), str):
        raise ValueError("the kind is missing")
    check_made(manifest)
    _check_digest(manifest)
    segments = manifest.get("segments")
    if not isinstance(segments, list) or not all(_is_segment_entry(entry) for entry in segments):
        raise ValueError("a segment has no sha256 or no list of what is deleted")
    names = [entry.get("data") for entry in segments]
    for name in names:
        if not isinstance(name, str) or not DATA_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a data folder")
    if len(set(names)) < len(names):
        raise ValueError("a data folder is named twice")


def _check_digest(manifest: dict[str, Any]) -> None:
    if manifest.get("sha256") != _digest(manifest):
        raise ValueError("its checksum is wrong")


def _check_entries(manifest: dict[str, Any]) -> None:
    _check_digest(manifest)
    arrays = [manifest.get("offsets"), *_values(manifest, "columns"), *_values(manifest, "extras")]
    if not all(_is_array_entry(entry) for entry in arrays):
        raise ValueError("an array has no shape, dtype or sha256")
    if not _is_documents_entry(manifest.get("documents")):
        raise ValueError("documents have no size or sha256")


def _is_segment_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("sha256"), str)
        and isinstance(entry.get("deleted"), list)
        and all(type(place) is int and place >= 0 for place in entry["deleted"])
    )


def _values(manifest: dict[str, Any], part: str) -> list[Any]:
    arrays = manifest.get(part)
    if not isinstance(arrays, dict):
        raise ValueError(f"{part} are missing")
    return list(arrays.values())


def _is_array_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("shape"), list)
        and all(type(size) is int and size >= 0 for size in entry["shape"])
        and isinstance(entry.get("dtype"), str)
        and isinstance(entry.get("sha256"), str)
    )


def _is_documents_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and type(entry.get("size")) is int and isinstance(entry.get("sha256"), str)


def _digest(manifest: dict[str, Any]) -> str:
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def write_manifest(file: Path, manifest: dict[str, Any]) -> str:
    """Write a manifest with its own checksum, and return that. Raises InputError if a setting is not JSON."""
    try:
        digest = _digest(manifest)
        manifest = {**manifest, "sha256": digest}
        text = json.dumps(manifest, ensure_ascii=False, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the settings of the index cannot be saved as JSON: {error}") from error
    with file.open("wb") as opened:
        opened.write(text.encode("utf-8", "surrogatepass"))
        opened.flush()
        os.fsync(opened.fileno())
    return digest
