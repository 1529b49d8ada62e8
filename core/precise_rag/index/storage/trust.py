"""What the settings of a saved index may not decide: which models are loaded from the disk."""

import re
from collections.abc import Mapping
from typing import Any

from precise_rag.errors import ModelError
from precise_rag.types import Chunk, Document, SentenceTable

_PLAIN = re.compile(r"sentences|paragraphs|segments|[1-9][0-9]{0,8} tokens")


class MissingSegmenter:
    """Stands for a segmenter that a saved index names and that is not in this package.

    The index can be searched, but not grow.
    """

    def __init__(self, name: str, setting: str) -> None:
        self.name, self._setting = name, setting

    def segment(self, text: Document, table: SentenceTable | None = None) -> list[Chunk]:
        """Raise ModelError."""
        raise ModelError(
            f"the index was built with {self._setting}={self.name!r}, and a saved index does not choose "
            f"models to load; if you trust that one, load the index with {self._setting}= the same value "
            "or segmenter, then add documents"
        )


def without_models(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Saved settings in which segmenters that are not packaged are replaced by `MissingSegmenter`."""
    return {name: _without_model(name, value) for name, value in settings.items()}


def _without_model(name: str, value: Any) -> Any:
    if name not in ("chunks", "passages", "surroundings") or not isinstance(value, str):
        return value
    if _PLAIN.fullmatch(value):
        return value
    from precise_rag.segmentation.pretrained import PACKAGED

    return value if value in PACKAGED else MissingSegmenter(value, name)
