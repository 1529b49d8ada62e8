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
from precise_rag.encoders.prompts import Prompts, prompts_of
from precise_rag.encoders.token_ids import read_tokenizer
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

    limit: tokens of a text that it reads, with those of a prompt. pooling: the vector of a text is the "mean"
    of its tokens' states, or that of its first token ("cls").
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
    prompts: Prompts


def bert_settings(folder: Path, source: str) -> BertSettings | None:
    """Return the settings of the model in a folder, or None if it is not a BERT that can be run here.

    source: the folder, or the model's name; see `prompts_of`.
    None stands for another architecture, a tokenizer that torch reads otherwise, or other parts than BERT,
    pooling and scaling to unit length. It also stands for weights that are not in safetensors, and for a
    missing or damaged file.
    """
    try:
        kinds = [module["type"].rpartition(".")[2] for module in _settings(folder / "modules.json")]
        if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
            return None
        paths = [module["path"] for module in _settings(folder / "modules.json")]
        config, pooling = _settings(folder / "config.json"), _settings(folder / paths[1] / "config.json")
        tokens, own = (_optional(folder, f"{name}_config.json") for name in ("tokenizer", "sentence_bert"))
        prompts = prompts_of(_optional(folder, "config_sentence_transformers.json"), source)
        chosen = [name for name, used in pooling.items() if name.startswith("pooling_mode_") and used]
        plain = (
            paths[0] == ""
            and config["model_type"] == "bert"
            and config["hidden_act"] == "gelu"
            and config.get("position_embedding_type", "absolute") == "absolute"
            and not config.get("is_decoder")
            and not own.get("do_lower_case")
            and pooling.get("include_prompt", True)
            and _is_read_as_written(folder / "tokenizer.json", tokens)
            and (folder / "model.safetensors").is_file()
        )
        mode = pooling.get("pooling_mode") or (_POOLING.get(chosen[0]) if len(chosen) == 1 else None)
        if not plain or mode not in ("cls", "mean"):
            return None
        layers, heads, width, inner, vocabulary, positions = (
            _size(config[name], _LARGEST) for name in _SIZES
        )
        limits = own.get("max_seq_length"), tokens.get("model_max_length"), positions
        limit = min(_size(limit) for limit in limits if limit is not None)
        if width % heads:
            return None
        epsilon = float(config["layer_norm_eps"])
        return BertSettings(layers, heads, width, inner, vocabulary, positions, epsilon, limit, mode, prompts)
    except (ModelError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None


def _is_read_as_written(file: Path, settings: Any) -> bool:
    """Whether transformers reads texts by a tokenizer.json as it stands. settings: tokenizer_config.json."""
    try:
        normalizer = read_tokenizer(file).normalizer
    except Exception:  # the library raises no class of its own
        return False
    kind, known = type(normalizer).__name__, str(settings.get("tokenizer_class")).removesuffix("Fast")
    if kind == "BertNormalizer":
        return bool(normalizer.lowercase == settings.get("do_lower_case", normalizer.lowercase))
    return known in ("PreTrainedTokenizer", "TokenizersBackend") or (
        kind == "Precompiled" and known == "XLMRobertaTokenizer"
    )


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
    check_tensors(folder, weights, bert_shapes(settings))
    return weights


def word_table(folder: Path) -> Tensors:
    """Return the word embeddings of a model in a folder, with their scales if they are in int8."""
    tensors = read_tensors(folder / "model.safetensors")
    return {name: tensors[name] for name in (WORDS, f"{WORDS}_scale") if name in tensors}


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


def bert_shapes(settings: BertSettings) -> dict[str, tuple[int, ...]]:
    """The shapes of all weights by their names."""
    width, inner = settings.width, settings.inner
    square = [f"attention.{part}" for part in ("self.query", "self.key", "self.value", "output.dense")]
    parts: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(square, (width, width)),
        "attention.output.LayerNorm": (width,),
        "intermediate.dense": (inner, width),
        "output.dense": (width, inner),
        "output.LayerNorm": (width,),
    }
    named = {
        f"encoder.layer.{n}.{part}": shape for n in range(settings.layers) for part, shape in parts.items()
    }
    shapes: dict[str, tuple[int, ...]] = {
        WORDS: (settings.vocabulary, width),
        "embeddings.position_embeddings.weight": (settings.positions, width),
        "embeddings.token_type_embeddings.weight": (-1, width),
    }
    for name, shape in ({"embeddings.LayerNorm": (width,)} | named).items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes


def _settings(path: Path) -> Any:
    return json.loads(read_model_file(path).decode("utf-8"))


def _size(size: Any, most: float = float("inf")) -> int:
    """A size that a model can have; ValueError for others. Larger ones could only exhaust the memory."""
    if type(size) is not int or not 1 <= size <= most:
        raise ValueError(f"{size!r:.60} is no size")
    return size


def _optional(folder: Path, name: str) -> Any:
    return _settings(folder / name) if (folder / name).exists() else {}
