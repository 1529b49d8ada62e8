"""The titles above a chunk, in its metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HEADER_PATH = "header_path"
"""Metadata key of the headings above a chunk; LlamaIndex's MarkdownNodeParser has the same."""


def with_header_path(metadata: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
    """Return the metadata with the path as "header_path"; unchanged without a path, or if it has that key."""
    if not path or HEADER_PATH in metadata:
        return metadata
    return {**metadata, HEADER_PATH: f"/{'/'.join(path)}/"}
