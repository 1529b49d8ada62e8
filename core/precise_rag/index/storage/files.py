"""The files of a saved index: arrays and documents, written to the disk and checked when they are read."""

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError
from precise_rag.types import Document

Verify = Literal["full", "shape"]
"""What to check in a saved index: "full" reads every file and compares checksums; "shape" compares sizes,
shapes and types."""

DOCUMENTS = "documents.jsonl"
_ARRAY_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}(\.[a-z0-9_]{1,64})?")
_DTYPE = re.compile(r"\|[bui]1|<[ui][248]|<f[248]")
_CHUNK = 2**20


def array_file(name: str) -> str:
    """The file name of an array. Raises ValueError if `name` could leave the folder."""
    if not isinstance(name, str) or not _ARRAY_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an array")
    return f"{name}.npy"


def is_index_file(name: str) -> bool:
    """Whether a data folder of ours may hold a file of this name."""
    stem, dot, ending = name.rpartition(".")
    return name in (DOCUMENTS, "segment.json") or (
        dot + ending == ".npy" and _ARRAY_NAME.fullmatch(stem) is not None
    )


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading. Raises OSError if it is a link, a folder, a pipe or a device."""
    flags = os.O_RDONLY
    for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, flag, 0)
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(f"{path.name} is not a regular file")
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path.name} is not a regular file")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def write_array(folder: Path, name: str, array: npt.NDArray[Any]) -> dict[str, Any]:
    """Write one array as .npy. Returns its shape, dtype and the sha256 of its bytes."""
    array = np.ascontiguousarray(array)
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if not _DTYPE.fullmatch(array.dtype.str):
        raise InputError(f"column {name!r} of type {array.dtype} cannot be saved")
    if array.dtype.kind == "f":
        _check_finite(array, f"column {name!r}", InputError)
    with (folder / array_file(name)).open("wb") as file:
        np.save(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    digest = hashlib.sha256(array.reshape(-1).view(np.uint8).data)
    return {"shape": list(array.shape), "dtype": array.dtype.str, "sha256": digest.hexdigest()}


def read_array(folder: Path, name: str, entry: dict[str, Any], verify: Verify) -> npt.NDArray[Any]:
    """Open one array, memory-mapped and read-only.

    entry: what `write_array` returned.
    Raises OSError or ValueError if the file is not that array.
    """
    file_name = array_file(name)
    with open_regular(folder / file_name) as file:
        shape, dtype = _read_header(file, file_name)
        if (list(shape), dtype.str) != (entry["shape"], entry["dtype"]):
            raise ValueError(
                f"{file_name} has shape {shape} and type {dtype.str}, "
                f"{entry['shape']} and {entry['dtype']} expected"
            )
        start, size = file.tell(), os.fstat(file.fileno()).st_size
        expected = start + math.prod(shape) * dtype.itemsize
        if size != expected:
            raise ValueError(f"{file_name} has {size} bytes, {expected} expected")
        if verify == "full" and _digest(file, dtype, file_name) != entry["sha256"]:
            raise ValueError(f"the checksum of {file_name} is wrong")
        return np.memmap(file, dtype=dtype, mode="r", offset=start, shape=shape)


def _read_header(file: BinaryIO, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("unknown version")
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
        if fortran_order or not 1 <= len(shape) <= 2 or min(shape) < 0 or not _DTYPE.fullmatch(dtype.str):
            raise ValueError("not an array that this library writes")
    except Exception as error:  # numpy parses the header as Python, so almost anything can be raised
        raise ValueError(f"{name} has a damaged header: {error}") from error
    return shape, dtype


def _digest(file: BinaryIO, dtype: np.dtype[Any], name: str) -> str:
    """The sha256 of the rest of a file. Raises ValueError if numbers in it are not finite."""
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(_CHUNK))
    while count := file.readinto(buffer):  # type: ignore[attr-defined]
        part = buffer[:count]
        digest.update(part)
        if dtype.kind == "f":
            _check_finite(np.frombuffer(part, dtype=dtype), name, ValueError)
    return digest.hexdigest()


def _check_finite(numbers: npt.NDArray[Any], name: str, error: type[ValueError]) -> None:
    """Raises `error` if a number is not finite, or all are so large that their sum is not."""
    with np.errstate(all="ignore"):
        total = numbers.sum(dtype=np.float64 if numbers.dtype.itemsize == 8 else np.float32)
    if not np.isfinite(total):
        raise error(f"{name} holds numbers that are not finite")


def write_documents(folder: Path, documents: Iterable[Document]) -> dict[str, Any]:
    """Write one JSON line per document. Returns the file's size and sha256.

    Raises InputError if a document would not be read back as it is.
    """
    digest, size = hashlib.sha256(), 0
    with (folder / DOCUMENTS).open("wb") as file:
        for document in documents:
            line = _document_line(document)
            digest.update(line)
            size += file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return {"size": size, "sha256": digest.hexdigest()}


def read_documents_file(folder: Path, entry: dict[str, Any], verify: Verify) -> dict[str, Document]:
    """Read the file of `write_documents`; entry: its return value.

    Raises OSError or ValueError if the file is not that one.
    """
    documents: dict[str, Document] = {}
    digest = hashlib.sha256()
    with open_regular(folder / DOCUMENTS) as file:
        size = os.fstat(file.fileno()).st_size
        if size != entry["size"]:
            raise ValueError(f"{DOCUMENTS} has {size} bytes, {entry['size']} expected")
        for line in file:
            if verify == "full":
                digest.update(line)
            document = _document(json.loads(line.decode("utf-8", "surrogatepass")))
            if document.id in documents:
                raise ValueError(f"{DOCUMENTS} holds the document {document.id!r} twice")
            documents[document.id] = document
    if verify == "full" and digest.hexdigest() != entry["sha256"]:
        raise ValueError(f"the checksum of {DOCUMENTS} is wrong")
    return documents


def _document(record: Any) -> Document:
    if not isinstance(record, dict) or record.keys() != {"id", "text", "metadata"}:
        raise ValueError(f"{DOCUMENTS} holds a line that is not a document")
    if not isinstance(record["metadata"], dict):
        raise ValueError(f"{DOCUMENTS} holds metadata that are not an object")
    return Document(**record)


def _document_line(document: Document) -> bytes:
    """UTF-8 with surrogates as they are: JSON's escapes would join a pair of them to one character."""
    try:
        metadata = dict(document.metadata)
        check_metadata(metadata)
        record = {"id": document.id, "text": document.text, "metadata": metadata}
        return (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"document {document.id!r}: metadata cannot be saved as JSON: {error}") from error


def check_metadata(value: object) -> None:
    """Raises TypeError for values that JSON would give back as something else."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not a string")
            check_metadata(item)
    elif isinstance(value, list):
        for item in value:
            check_metadata(item)
    elif not (value is None or isinstance(value, str | bool | int | float)):
        hint = "; give a list" if isinstance(value, tuple | set | frozenset) else ""
        raise TypeError(f"{type(value).__name__} is not a JSON type{hint}")
