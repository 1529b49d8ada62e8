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

MANIFEST = "manifest.json"
FORMAT = "precise-rag-index"
VERSION = 3
_READABLE = (1, 2, 3)
FILES, FILES_PART = "files.json", "files.json.part"
"""Beside the manifest: which files `precise index` made the index of, and the same while it is written."""
DATA_NAME = re.compile(r"data-[0-9a-f]{32}")
"""Names of data folders."""
_MOST_BYTES = 2**31
"""A larger manifest is not read."""


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read the manifest of a saved index; one of an older version gets the form of the newest.

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
    if type(version) is not int or version not in _READABLE:
        raise IndexFormatError(
            f"{path} has index format {version!r}, this version reads up to {VERSION}; "
            "build the index again or install the version that wrote it"
        )
    try:
        return _checked(manifest)
    except (ValueError, RecursionError) as error:
        raise IndexFormatError(f"{file} is damaged ({error}); build the index again") from error


def has_index(path: str | Path) -> bool:
    """Whether `path` has a manifest; a first save that was interrupted leaves a folder without one."""
    return os.path.lexists(Path(path) / MANIFEST)


def parse_manifest(file: Path) -> Any:
    """Read the JSON of a manifest, whatever it holds.

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


def _checked(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest in the form of the newest version. Raises ValueError for what no save writes.

    A hybrid index of version 1 or 2 has no headings; it is searched, added to and saved without them.
    """
    if manifest["version"] == 1:
        manifest = _upgraded(manifest)
    else:
        _check_entries(manifest)
    if not isinstance(manifest.get("data"), str) or not DATA_NAME.fullmatch(manifest["data"]):
        raise ValueError(f"{manifest.get('data')!r} is not the name of a data folder")
    if not isinstance(manifest.get("kind"), str) or not isinstance(manifest.get("settings"), dict):
        raise ValueError("the kind or the settings are missing")
    if manifest["version"] < 3 and manifest["kind"] == "hybrid":
        manifest = {**manifest, "settings": {"headings": False, **manifest["settings"]}}
    encoder = manifest.get("encoder")
    if not isinstance(encoder, dict) or not {"name", "source"} <= encoder.keys():
        raise ValueError("the encoder is missing")
    if not all(isinstance(encoder[part], str | None) for part in ("name", "source")):
        raise ValueError("the encoder has no name")
    return manifest


def _upgraded(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest of version 1, which named arrays and kept no shapes and checksums."""
    names = {part: manifest.get(part) for part in ("columns", "extras")}
    for part, value in names.items():
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise ValueError(f"{part} are not a list of names")
        names[part] = dict.fromkeys(value)
    return {**manifest, **names, "offsets": None, "documents": None}


def _check_entries(manifest: dict[str, Any]) -> None:
    if manifest.get("sha256") != _digest(manifest):
        raise ValueError("its checksum is wrong")
    arrays = [manifest.get("offsets"), *_values(manifest, "columns"), *_values(manifest, "extras")]
    if not all(_is_array_entry(entry) for entry in arrays):
        raise ValueError("an array has no shape, dtype or sha256")
    if not _is_documents_entry(manifest.get("documents")):
        raise ValueError("documents have no size or sha256")


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


def write_manifest(file: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest with its own checksum. Raises InputError if a setting is not JSON."""
    try:
        manifest = {**manifest, "sha256": _digest(manifest)}
        text = json.dumps(manifest, ensure_ascii=False, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the settings of the index cannot be saved as JSON: {error}") from error
    with file.open("wb") as opened:
        opened.write(text.encode("utf-8", "surrogatepass"))
        opened.flush()
        os.fsync(opened.fileno())
