"""What an index was made with, as it is saved: settings are checked, and load no models from the disk."""

import re
from collections.abc import Mapping, Set
from dataclasses import fields
from pathlib import Path
from typing import Any

from precise_rag.checks import check_text
from precise_rag.errors import IndexFormatError, InputError, ModelError
from precise_rag.protocols import Encoder
from precise_rag.types import Chunk, Document, SentenceTable

_PLAIN = re.compile(r"sentences|paragraphs|segments|[1-9][0-9]{0,8} tokens")
_SEGMENTER = re.compile(r"([a-z-]+)(?:\(\w+=(?:None|[\d.]+)(?:, \w+=(?:None|[\d.]+))*\))?")


def check_made(made: object) -> None:
    """Raise ValueError unless the encoder and the settings of an index are there."""
    match made:
        case {"settings": dict(), "encoder": {"name": str(), "source": str()}}:
            return
    raise ValueError("its encoder or its settings are missing")


def usable_settings(settings_type: type, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return saved settings as arguments of their type.

    Segmenters that are not in this package, or have more than numbers as options, are replaced by
    `_MissingSegmenter`.
    Raises TypeError or ValueError unless the settings are values that the type takes.
    """
    usable = dict(saved)
    for name in ("chunks", "passages", "surroundings"):
        value = saved.get(name)
        if isinstance(value, str) and not _PLAIN.fullmatch(value):
            from precise_rag.segmentation.segmenter import PACKAGED

            known = _SEGMENTER.fullmatch(value)
            is_ours = known is not None and known[1] in PACKAGED
            usable[name] = value if is_ours else _MissingSegmenter(value, name)
    settings_type(**usable)
    return usable


_FOLDER = re.compile(r"\A[^\n]*@(?=[0-9a-f]{16}\Z)")  # of a model that is named by its checksum


def made_with(encoder: Encoder, settings: Any) -> dict[str, Any]:
    """What is saved of an index's encoder and settings."""
    values = {field.name: _as_json(getattr(settings, field.name)) for field in fields(settings)}
    source = getattr(encoder, "source", None) or encoder.name
    return {"encoder": {"name": encoder.name, "source": source}, "settings": values}


def check_opened(
    where: str | Path,
    made: Mapping[str, Any],
    encoder: Encoder | None,
    given: Mapping[str, Any],
    changeable: Set[str],
) -> None:
    """Check what a saved index is opened with.

    where: the index. made: what it was `made_with`. given: settings, of which those may differ from the
    saved ones that are `changeable`.
    Raises IndexFormatError for another encoder, and InputError for another value of another setting.
    """
    if encoder is not None:
        check_text("the name of the encoder", getattr(encoder, "name", None))
    name, saved = made["encoder"]["name"], made["settings"]
    given_name = None if encoder is None else encoder.name
    if encoder is None or _FOLDER.sub("", name) != _FOLDER.sub("", encoder.name):
        raise IndexFormatError(
            f"{where} was built with encoder {name!r} but {given_name!r} was given; "
            f"give that one, {made['encoder']['source']!r}, or delete it and build it again"
        )
    changed = {setting for setting, value in given.items() if _as_json(saved.get(setting)) != _as_json(value)}
    if fixed := sorted((changed & saved.keys()) - changeable):
        raise InputError(
            f"{fixed[0]} cannot change in {where} (settings that can: {', '.join(sorted(changeable))}); "
            "delete it and build it again"
        )


def _as_json(value: object) -> object:
    """A setting as JSON; a segmenter object is recorded by its name."""
    value = list(value) if isinstance(value, tuple) else value
    plain = value is None or isinstance(value, str | int | float | list | dict)
    return value if plain else getattr(value, "name", str(value))


class _MissingSegmenter:
    """Stands for a segmenter that a saved index names: the index can be searched, but not grow."""

    def __init__(self, name: str, setting: str) -> None:
        self.name, self._setting = name, setting

    def segment(self, text: Document, table: SentenceTable | None = None) -> list[Chunk]:
        """Raise ModelError."""
        raise ModelError(
            f"the index was built with {self._setting}={self.name!r}, and a saved index does not choose "
            f"models to load; if you trust that one, load the index with {self._setting}= the same value "
            "or segmenter, then add documents"
        )
