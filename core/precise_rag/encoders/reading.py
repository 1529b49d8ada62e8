"""How models in folders read texts, by their files, as transformers and sentence-transformers save them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from precise_rag._data import packaged_toml
from precise_rag.checkpoints import read_model_file
from precise_rag.encoders.token_ids import read_tokenizer
from precise_rag.errors import ModelError


class Prompts(NamedTuple):
    """What stands before each query, and before each text of a document; "" for nothing."""

    query: str = ""
    document: str = ""


_MODULES = ["Transformer", "Pooling", "Normalize"]
"""Modules of sentence-transformers that are known, in their order."""
_TORCH = "model.safetensors", "pytorch_model.bin"
_POOLING = "cls", "max", "mean", "mean_sqrt_len", "lasttoken"
"""Vectors of the mean and of what is divided by the root of the length differ in their lengths only."""
_NORMALIZER = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
"""Settings of transformers that stand above those in the tokenizer.json of a BERT."""
_LIMIT, _NO_LIMIT = 512, 1_000_000
"""Tokens of a text that are read if no file tells; what files write that mean none is larger than this."""
_OF_QUERIES, _OF_DOCUMENTS = ("query",), ("document", "passage", "corpus")
_FAMILIES = {pattern: Prompts(**its) for pattern, its in packaged_toml("encoders/prompts.toml").items()}


class NotRunnable(ModelError):
    """A model that ONNX Runtime cannot run from its files; torch may, if it has weights of its own."""

    def __init__(self, source: object, reason: str) -> None:
        super().__init__(f"{source} {reason}")


class Reading(NamedTuple):
    """How a model reads texts.

    folder: where its network and tokenizer are. config: its config.json. limit: tokens of a text that it
    reads, with those of a prompt. changes: of its tokenizer; see `read_tokenizer`. pooling: the vector of a
    text is the "mean" or "max" of its tokens' states, or that of its first ("cls") or last ("lasttoken").
    """

    folder: Path
    config: dict[str, Any]
    limit: int
    changes: dict[str, Any]
    pooling: str
    prompts: Prompts

    def tokenizer(self, limit: int | None = None) -> Any:
        """Return its `tokenizers.Tokenizer`. limit: tokens after which texts are cut; default: none."""
        try:
            return read_tokenizer(self.folder / "tokenizer.json", limit=limit, **self.changes)
        except Exception as error:  # the library raises no class of its own
            raise ModelError(f"{self.folder} contains no tokenizer that can be read: {error}") from error


def reading_of(folder: Path, source: str) -> Reading:
    """Return how the model in a folder reads texts.

    source: the folder, or the model's name; see `prompts_of`.
    Raises NotRunnable if a file is missing, or asks for what only torch does. Other errors tell of a file
    that cannot be read.
    """
    listed = _settings(folder / "modules.json", [])
    kinds = [module["type"].rpartition(".")[2] for module in listed]
    if kinds != _MODULES[: len(kinds)]:
        raise NotRunnable(source, f"consists of {', '.join(kinds)}, not of {', '.join(_MODULES)}")
    root, *others = (folder / module["path"] for module in listed or [{"path": ""}])
    for name in ("config.json", "tokenizer.json"):
        if not (root / name).is_file():
            raise NotRunnable(source, f"has no {name}, which `save_pretrained` of transformers writes")
    config, tokens = _settings(root / "config.json"), _settings(root / "tokenizer_config.json", {})
    own: Any = next((_settings(file) for file in sorted(root.glob("sentence_*_config.json"))), {})
    has_weights = any((root / file).exists() for file in _TORCH)  # torch takes the mean if no file tells
    pooling = "cls" if "bge-" in _name(source) and not has_weights else "mean"
    if others:
        settings = _settings(others[0] / "config.json")
        chosen = [name for name, used in settings.items() if name.startswith("pooling_mode_") and used]
        pooling = settings.get("pooling_mode") or "+".join(chosen) or "mean"
        pooling = re.sub(r"pooling_mode_|_tokens?\b", "", pooling)
        if pooling not in _POOLING or not settings.get("include_prompt", True):
            raise NotRunnable(
                source, f"has a pooling ({pooling}) that is not known, or leaves prompts out of it"
            )
    changes = {ours: tokens[theirs] for theirs, ours in _NORMALIZER.items() if theirs in tokens}
    return Reading(
        folder=root,
        config=config,
        limit=_limit(config, own.get("max_seq_length") or tokens.get("model_max_length")),
        changes={**changes, "lower": bool(own.get("do_lower_case"))},
        pooling=pooling,
        prompts=prompts_of(_settings(folder / "config_sentence_transformers.json", {}), source),
    )


def prompts_of(settings: Mapping[str, Any], source: str) -> Prompts:
    """Return the prompts of a model.

    settings: its config_sentence_transformers.json. The default prompt is for what has none of its own. If
        all are empty, as sentence-transformers writes them where it knows of none, the family tells.
    source: the model's folder, or its name on the hub, by which its family is found.
    Raises ModelError for a prompt that is not text.
    """
    given, common = settings.get("prompts") or {}, settings.get("default_prompt_name")
    if not all(isinstance(prompt, str | None) for prompt in given.values()):
        raise ModelError(f"{source}: each of the prompts must be a text, got {given!r:.60}")
    others = [common] if common not in (*_OF_QUERIES, *_OF_DOCUMENTS) else []
    roles = ([*_OF_QUERIES, *others], [*_OF_DOCUMENTS, *others])
    told = Prompts(*(next((given[name] for name in names if given.get(name)), "") for names in roles))
    families = (prompts for pattern, prompts in _FAMILIES.items() if re.search(pattern, _name(source)))
    return told if any(told) else next(families, told)


def _name(source: str) -> str:
    return re.split(r"[/\\]", re.sub(r"[/\\]snapshots[/\\]\w+$", "", source.lower()))[-1]


def _limit(config: dict[str, Any], told: float | None) -> int:
    """Tokens that a model reads, by its config.json and by what other files tell.

    RoBERTa and its like count positions from behind the id of the padding; they have so many more of them.
    """
    positions, before = config.get("max_position_embeddings"), (config.get("pad_token_id") or 0) + 1
    if positions and positions % 8 == before:
        positions -= before
    limits = [limit for limit in (told, positions) if limit and 0 < limit < _NO_LIMIT]
    return int(min(limits, default=_LIMIT))


def _settings(file: Path, default: Any = None) -> Any:
    """The content of a JSON file; of one that is missing, the default if there is one."""
    if default is not None and not file.exists():
        return default
    return json.loads(read_model_file(file).decode("utf-8"))
