"""The files of a BERT encoder: its settings and weights in a sentence-transformers folder."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from precise_rag.checkpoints.expected import check_tensors
from precise_rag.checkpoints.quantized import check_scales, dequantized
from precise_rag.checkpoints.saved import Tensors, read_model_file, read_tensors
from precise_rag.errors import ModelError

_POOLING = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}

_SIZES = (
    "num_hidden_layers",
    "num_attention_heads",
    "hidden_size",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)
_LARGEST = 1_000_000
WORDS = "embeddings.word_embeddings.weight"
"""The largest tensor."""


class BertSettings(NamedTuple):
    """Sizes of a BERT encoder.

    limit: tokens of a text that it reads. pooling: the vector of a text is the "mean" of its tokens'
    states, or that of its first token ("cls").
    """

    layers: int
    heads: int
    width: int
    inner: int
    vocabulary: int
    positions: int
    epsilon: float
    limit: int
    pooling: str


def bert_settings(folder: Path) -> BertSettings | None:
    """Return the settings of the model in a folder, or None if it is not a BERT that can be run here.

    None stands for another architecture, prompts, or other parts than BERT, pooling and scaling to unit
    length. It also stands for weights that are not in safetensors, and for a missing or damaged file.
    """
    try:
        kinds = [module["type"].rpartition(".")[2] for module in _settings(folder / "modules.json")]
        if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
            return None
        paths = [module["path"] for module in _settings(folder / "modules.json")]
        config, pooling = _settings(folder / "config.json"), _settings(folder / paths[1] / "config.json")
        tokens = _optional(folder, "tokenizer_config.json")
        prompts = _optional(folder, "config_sentence_transformers.json").get("prompts") or {}
        limits = (
            _optional(folder, "sentence_bert_config.json").get("max_seq_length"),
            tokens.get("model_max_length"),
        )
        normalizer = _settings(folder / "tokenizer.json")["normalizer"]
        chosen = [name for name, used in pooling.items() if name.startswith("pooling_mode_") and used]
        plain = (
            paths[0] == ""
            and config["model_type"] == "bert"
            and config["hidden_act"] == "gelu"
            and config.get("position_embedding_type", "absolute") == "absolute"
            and not config.get("is_decoder")
            and not _optional(folder, "sentence_bert_config.json").get("do_lower_case")
            and not any(prompts.values())
            and normalizer["type"] == "BertNormalizer"
            and normalizer["lowercase"] == tokens.get("do_lower_case", normalizer["lowercase"])
            and (folder / "model.safetensors").is_file()
        )
        mode = pooling.get("pooling_mode") or (_POOLING.get(chosen[0]) if len(chosen) == 1 else None)
        if not plain or mode not in ("cls", "mean"):
            return None
        layers, heads, width, inner, vocabulary, positions = (_size(config, name) for name in _SIZES)
        limit = min(_size({"limit": limit}, "limit") for limit in (*limits, positions) if limit is not None)
        if width % heads:
            return None
        epsilon = float(config["layer_norm_eps"])
        return BertSettings(layers, heads, width, inner, vocabulary, positions, epsilon, limit, mode)
    except (ModelError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None


def bert_weights(folder: Path, settings: BertSettings) -> Tensors:
    """Return the weights in a folder by their names, in float32. Raises ModelError.

    Matrices may be in int8, as `quantized` makes them. Those of the words stay so, with their scales.
    """
    given = {
        name.removeprefix("bert."): tensor
        for name, tensor in read_tensors(folder / "model.safetensors").items()
        if tensor.dtype != np.int64
    }
    small = {WORDS, f"{WORDS}_scale"} if f"{WORDS}_scale" in check_scales(given) else set()
    weights = dequantized({name: tensor for name, tensor in given.items() if name not in small})
    weights |= {name: given[name] for name in small}
    check_tensors(folder, weights, _shapes(settings))
    return weights


@contextmanager
def float32_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder of the same model that torch reads: if its matrices are in int8, a copy in float32.

    The copy is removed afterwards. Raises ModelError if the weights cannot be read.
    """
    weights = folder / "model.safetensors"
    if not weights.is_file() or not _has_scales(weights):
        yield folder
        return
    with TemporaryDirectory(ignore_cleanup_errors=True) as made:
        shutil.copytree(folder, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns(weights.name))
        save_file(dequantized(read_tensors(weights)), Path(made, weights.name), metadata={"format": "pt"})
        yield Path(made)


def _has_scales(weights: Path) -> bool:
    """Whether some tensors of a file have scales, as `quantized` makes them; they are not read."""
    try:
        with safe_open(weights, "numpy") as file:
            return any(name.endswith("_scale") for name in file.keys())  # noqa: SIM118
    except Exception as error:  # the library raises whatever a damaged header leads to
        raise ModelError(f"{weights} is not a safetensors file: {error!r}") from error


def _layer_shapes(name: str, settings: BertSettings) -> dict[str, tuple[int, ...]]:
    linear = {
        "attention.self.query": (settings.width, settings.width),
        "attention.self.key": (settings.width, settings.width),
        "attention.self.value": (settings.width, settings.width),
        "attention.output.dense": (settings.width, settings.width),
        "intermediate.dense": (settings.inner, settings.width),
        "output.dense": (settings.width, settings.inner),
    }
    shapes: dict[str, tuple[int, ...]] = {}
    for part, shape in linear.items():
        shapes |= {f"{name}.{part}.weight": shape, f"{name}.{part}.bias": shape[:1]}
    for part in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes |= {f"{name}.{part}.{which}": (settings.width,) for which in ("weight", "bias")}
    return shapes


def _shapes(settings: BertSettings) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        WORDS: (settings.vocabulary, settings.width),
        "embeddings.position_embeddings.weight": (settings.positions, settings.width),
        "embeddings.token_type_embeddings.weight": (-1, settings.width),
        "embeddings.LayerNorm.weight": (settings.width,),
        "embeddings.LayerNorm.bias": (settings.width,),
    }
    for number in range(settings.layers):
        shapes |= _layer_shapes(f"encoder.layer.{number}", settings)
    return shapes


def _settings(path: Path) -> Any:
    return json.loads(read_model_file(path).decode("utf-8"))


def _size(config: Any, name: str) -> int:
    """A size that a model can have; ValueError for others. Larger ones could only exhaust the memory."""
    size = config[name]
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"{name} must be a whole number from 1, got {size!r}")
    if name in _SIZES and size > _LARGEST:
        raise ValueError(f"{name} is {size}")
    return size


def _optional(folder: Path, name: str) -> Any:
    return _settings(folder / name) if (folder / name).exists() else {}
