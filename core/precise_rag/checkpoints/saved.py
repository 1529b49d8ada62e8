"""Saving and loading models: `config.json` and `model.safetensors` in one folder."""

import hashlib
import json
import math
import mmap
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load, save

from precise_rag.errors import ModelError
from precise_rag.models.packaged import packaged_checksums

Tensors = dict[str, np.ndarray[Any, Any]]

_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_WEIGHTS_SUM, _CONFIG_SUM = "weights_sha256", "config_sha256"
_MAX_BYTES = {_CONFIG: 2**20, _WEIGHTS: 2**30}
_NUMPY_TYPES = {"F32": np.float32, "F16": np.float16, "I8": np.int8, "I64": np.int64}
_MAX_OTHER_BYTES = 2**26
"""Files that are larger than this are not read."""


def save_checkpoint(
    folder: str | Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, Any],
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Save a model in one step: `folder` holds the earlier model or the new one, whole, at any moment.

    folder: where to write the files; created if missing.
    config: the model's settings; the sha256 of the weights and of the settings are added to the file.
    tensors: the weights by name.
    files: other files by name; `config` must hold the sha256 of each.

    All new files are first written beside the old ones, as "NAME.part". Then the new config replaces the old
    one, and after it the other files move. `read_checked` finds those that have not moved yet.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})
    settings = {**config, _WEIGHTS_SUM: hashlib.sha256(weights).hexdigest()}
    settings[_CONFIG_SUM] = _settings_sha256(settings)
    text = json.dumps(settings, indent=2) + "\n"
    _finish_earlier_save(folder)
    others = {_WEIGHTS: weights, **files}
    for name, data in {**others, _CONFIG: text.encode("utf-8")}.items():
        with _part(folder, name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    for name in (_CONFIG, *others):
        _part(folder, name).replace(folder / name)


def _finish_earlier_save(folder: Path) -> None:
    """Move the files that a save wrote before it was interrupted to their places."""
    with suppress(ModelError):
        wanted = set(map(str, load_config(folder).values()))
        for part in folder.glob("*.part"):
            if hashlib.sha256(read_model_file(part)).hexdigest() in wanted:
                part.replace(part.with_suffix(""))


def _part(folder: Path, name: str) -> Path:
    return folder / f"{name}.part"


def load_checkpoint(folder: str | Path) -> tuple[dict[str, Any], Tensors]:
    """Load a saved model.

    Returns its config and its tensors by name.
    Raises ModelError if a file is missing, too large or broken, if the checksum of the weights or of
    the config is wrong, or if a weight is not finite. Also if a model of the package is not the one that
    was shipped.
    """
    folder = Path(folder)
    config = load_config(folder)
    weights = read_checked(folder, _WEIGHTS, config.get(_WEIGHTS_SUM))
    _check_shipped(folder, _WEIGHTS, config[_WEIGHTS_SUM])
    try:
        tensors = load(weights)
    except Exception as error:  # the library raises whatever a damaged header leads to
        raise ModelError(f"{folder / _WEIGHTS} is not a safetensors file: {error!r}") from error
    for name, tensor in tensors.items():
        if tensor.dtype.kind not in "iuf" or not np.isfinite(tensor).all():
            _refuse(folder / _WEIGHTS, f"has a tensor {name!r} with values that are not finite numbers")
    return config, tensors


def load_config(folder: Path) -> dict[str, Any]:
    """Return the config of a saved model. Raises ModelError as `load_checkpoint` does.

    A config without a checksum, as older versions wrote it, is not compared.
    """
    data = read_model_file(folder / _CONFIG)
    try:
        config = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{folder / _CONFIG} is not valid JSON: {error}") from error
    if not isinstance(config, dict):
        _refuse(folder / _CONFIG, f"must hold a JSON object, got {type(config).__name__}")
    if _CONFIG_SUM in config and config[_CONFIG_SUM] != _settings_sha256(config):
        _refuse(folder / _CONFIG, f"was changed: its {_CONFIG_SUM} is that of other settings")
    _check_shipped(folder, _CONFIG, hashlib.sha256(data).hexdigest())
    return config


def read_checked(folder: Path, name: str, sha256: object) -> bytes:
    """Return the bytes of a file of a model whose checksum its config names.

    Raises ModelError if the file has another checksum, and as `read_model_file`.
    """
    data = read_model_file(folder / name)
    actual = hashlib.sha256(data).hexdigest()
    if actual == sha256:
        return data
    with suppress(ModelError):  # a save was interrupted before it had moved the file
        data = read_model_file(_part(folder, name))
        if hashlib.sha256(data).hexdigest() == sha256:
            return data
    _refuse(folder / name, f"has sha256 {actual}, but {_CONFIG} names another")


def mapped_tensors(path: Path) -> Tensors:
    """Return the tensors of a safetensors file without reading them: the file is mapped into memory.

    Tensors of other types than float32, float16, int8 and int64 are left out.
    Raises ModelError if the file is missing or is not a safetensors file.
    """
    try:
        with open_model_file(path) as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with safe_open(path, "numpy"):  # checks the header, and that every tensor lies in the file
            start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
    except ModelError:
        raise
    except Exception as error:  # the library raises whatever a damaged header leads to
        raise ModelError(f"{path} is not a safetensors file: {error!r}") from error
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(
            data,
            _NUMPY_TYPES[entry["dtype"]],
            count=math.prod(entry["shape"]),
            offset=start + entry["data_offsets"][0],
        ).reshape(entry["shape"])
        for name, entry in header.items()
        if entry["dtype"] in _NUMPY_TYPES
    }


def read_model_file(path: Path) -> bytes:
    """Return the bytes of a file of a model.

    Raises ModelError if it is missing, too large, or a folder, pipe or device.
    """
    limit = _MAX_BYTES.get(path.name.removesuffix(".part"), _MAX_OTHER_BYTES)
    with open_model_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            _refuse(path, f"has {size} bytes, more than the {limit} that are read")
        return file.read(limit)


def open_model_file(path: Path) -> BufferedReader:
    """Open a file of a model. Raises ModelError if it is missing, or a folder, pipe or device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{path.parent} contains no model: {reason} ({path})") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        _refuse(path, "must be a file")
    return open(descriptor, "rb")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a finite number")


def _settings_sha256(settings: Mapping[str, Any]) -> str:
    """The sha256 of the settings without the checksum itself; their order and layout do not matter."""
    kept = {name: value for name, value in settings.items() if name != _CONFIG_SUM}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode("utf-8")).hexdigest()


def _check_shipped(folder: Path, name: str, sha256: str) -> None:
    shipped = packaged_checksums(folder).get(name)
    if shipped is not None and sha256 != shipped:
        _refuse(folder / name, "is not the file that this version of precise-rag ships")


def _refuse(path: Path, reason: str) -> NoReturn:
    raise ModelError(f"{path} {reason}; install or train the model again")
