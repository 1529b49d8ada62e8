"""Saving and loading models: `config.json` and `model.safetensors` in one folder, also as small numbers."""

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load, save

from precise_rag.errors import ModelError

Tensors = dict[str, np.ndarray[Any, Any]]
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_WEIGHTS_SUM, _CONFIG_SUM = "weights_sha256", "config_sha256"
_MAX_BYTES = {_CONFIG: 2**20, _WEIGHTS: 2**30}
_MAX_OTHER_BYTES = 2**26
"""Files that are larger than this are not read."""


def packaged_model(name: str) -> Path:
    """Return the folder of a model that ships with precise-rag, by its name in `precise_rag/models`."""
    return Path(__file__).resolve().parent / "models" / name


def save_checkpoint(
    folder: str | Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, Any],
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> None:
    """Save a model.

    folder: where to write the files; created if missing.
    config: the model's settings; the sha256 of the weights and of the settings are added to the file.
    tensors: the weights by name.
    files: other files by name; `config` must hold the sha256 of each.

    Each file is written beside the old one, and the config is replaced last. A save that was interrupted
    leaves the earlier model, or files that do not belong together, which are refused when they are loaded.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()})
    settings = {**config, _WEIGHTS_SUM: hashlib.sha256(weights).hexdigest()}
    settings[_CONFIG_SUM] = _settings_sha256(settings)
    text = json.dumps(settings, indent=2) + "\n"
    written = {**files, _WEIGHTS: weights, _CONFIG: text.encode("utf-8")}
    for name, data in written.items():
        with new_file(folder / f"{name}.part") as file:
            file.write(data)
    for name in written:
        (folder / f"{name}.part").replace(folder / name)


@contextmanager
def new_file(path: Path) -> Iterator[BufferedRandom]:
    """Open a new file to write and read; at the end it is on disk.

    What an interrupted save left in its place is removed, and a link is too: nothing is written through it.
    """
    path.unlink(missing_ok=True)
    with path.open("xb+") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def load_checkpoint(
    folder: str | Path, kinds: Mapping[str, type] = MappingProxyType({})
) -> tuple[dict[str, Any], Tensors]:
    """Load a saved model. kinds: what some of its settings must be.

    Returns its config and its tensors by name.
    Raises ModelError if a file is missing, too large or broken, if the checksum of the weights or of
    the config is wrong, if a setting is of another kind, or if a weight is not finite.
    """
    folder = Path(folder)
    config = load_config(folder, kinds)
    weights = read_checked(folder, _WEIGHTS, config.get(_WEIGHTS_SUM))
    try:
        tensors = load(weights)
    except Exception as error:  # the library raises whatever a damaged header leads to
        raise ModelError(f"{folder / _WEIGHTS} is not a safetensors file: {error!r}") from error
    for name, tensor in tensors.items():
        if tensor.dtype.kind not in "iuf" or not np.isfinite(tensor).all():
            refuse(folder / _WEIGHTS, f"has a tensor {name!r} with values that are not finite numbers")
    return config, tensors


def load_config(folder: Path, kinds: Mapping[str, type] = MappingProxyType({})) -> dict[str, Any]:
    """Return the config of a saved model. Raises ModelError as `load_checkpoint` does."""
    data = read_model_file(folder / _CONFIG)
    try:
        config = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{folder / _CONFIG} is not valid JSON: {error}") from error
    if not isinstance(config, dict):
        refuse(folder / _CONFIG, f"must hold a JSON object, got {type(config).__name__}")
    if _CONFIG_SUM not in config:
        refuse(folder / _CONFIG, f"has no {_CONFIG_SUM}, so it is not of a model of precise-rag")
    if config[_CONFIG_SUM] != _settings_sha256(config):
        refuse(folder / _CONFIG, f"was changed: its {_CONFIG_SUM} is not that of its settings")
    check_config(folder, config, kinds)
    return config


def read_checked(folder: Path, name: str, sha256: object) -> bytes:
    """Return the bytes of a file of a model whose checksum its config names.

    Raises ModelError if the file has another checksum, and as `read_model_file`.
    """
    data = read_model_file(folder / name)
    actual = hashlib.sha256(data).hexdigest()
    if actual != sha256:
        refuse(folder / name, f"has sha256 {actual}, but {_CONFIG} names another")
    return data


def read_tensors(path: Path) -> Tensors:
    """Return the tensors of a safetensors file.

    Raises ModelError if the file is missing, or is not a safetensors file of types that numpy has.
    """
    _check_is_file(path)
    try:
        with safe_open(path, "numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except Exception as error:  # the library raises whatever a damaged header leads to
        raise ModelError(f"{path} is not a safetensors file: {error!r}") from error


def read_model_file(path: Path) -> bytes:
    """Return a file's bytes. Raises ModelError if it is missing, too large, or a folder, pipe or device."""
    _check_is_file(path)
    limit = _MAX_BYTES.get(path.name, _MAX_OTHER_BYTES)
    try:
        size = path.stat().st_size
        if size > limit:
            refuse(path, f"has {size} bytes, more than the {limit} that are read")
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error}") from error


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file of a model in hexadecimal. Raises ModelError if it cannot be read."""
    _check_is_file(path)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error}") from error


def _check_is_file(path: Path) -> None:
    """Raise ModelError for what is missing, and for a folder, pipe or device."""
    if not path.is_file():
        raise ModelError(f"{path.parent} contains no model: {path.name} is missing, or is no file")


def _settings_sha256(settings: Mapping[str, Any]) -> str:
    """The sha256 of the settings without the checksum itself; their order and layout do not matter."""
    kept = {name: value for name, value in settings.items() if name != _CONFIG_SUM}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode("utf-8")).hexdigest()


def check_config(folder: str | Path, config: Mapping[str, Any], kinds: Mapping[str, type]) -> None:
    """Raise ModelError that names the folder for the first setting that is missing or of another kind."""
    for name, kind in kinds.items():
        if type(value := config.get(name)) is not kind:
            refuse(f"{folder}:", f"{name} in config.json must be {kind.__name__}, got {value!r:.60}")


def check_tensors(folder: str | Path, tensors: Tensors, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ModelError that names the folder for the first tensor that is missing or has another shape."""
    for name, shape in shapes.items():
        actual = tensors[name].shape if name in tensors else None
        if actual != shape:
            refuse(f"{folder}:", f"the tensor {name!r} must have shape {shape}, got {actual}")


def refuse(place: Path | str, reason: str) -> NoReturn:
    """Raise the ModelError of a file or folder that cannot be used for a reason."""
    raise ModelError(f"{place} {reason}; install or train the model again")


def quantized(tensors: Mapping[str, Any], tables: Collection[str], block: int | None = None) -> Tensors:
    """Make tensors smaller, for shipping: `tables` as int8, all other tensors as float16.

    tables: names of (n, d) tensors. Each gains a tensor "NAME_scale" (n, d / block) that its blocks are
    multiplied by to undo the quantization.
    block: columns that share a scale, a divisor of d; default: d, the whole row.
    """
    smaller: Tensors = {}
    for name, tensor in tensors.items():
        if name in tables:
            n, d = tensor.shape
            blocks = tensor.reshape(n, -1, block or d)
            scale = np.maximum(np.abs(blocks).max(axis=2) / 127, 2.0**-24).astype(np.float16)
            rows = np.round(blocks / scale[..., None].astype(np.float32)).reshape(n, d)
            smaller |= {name: np.clip(rows, -127, 127).astype(np.int8), f"{name}_scale": scale}
        else:
            smaller[name] = tensor.astype(np.float16)
    return smaller


def dequantized(tensors: Tensors) -> Tensors:
    """Undo `quantized`. Returns float32 tensors, equal to the original ones up to rounding.

    Raises ModelError if a table is not (n, d), or has no scales for each row in equal blocks of its columns.
    """
    restored = {name: tensor.astype(np.float32, copy=False) for name, tensor in tensors.items()}
    for name in [name for name, tensor in tensors.items() if tensor.dtype == np.int8]:
        shape, scale = tensors[name].shape, tensors.get(f"{name}_scale", np.zeros(0))
        has_rows = (len(shape), scale.ndim, scale.shape[:1]) == (2, 2, shape[:1])
        if not has_rows or scale.shape[1] == 0 or shape[1] % scale.shape[1]:
            raise ModelError(
                f"the model needs a tensor '{name}_scale' with one row per row of its table, whose columns "
                "are in as many equal blocks as that row has scales"
            )
        blocks = restored[name].reshape(*scale.shape, -1)
        blocks *= scale[..., None]
        del restored[f"{name}_scale"]
    return restored
