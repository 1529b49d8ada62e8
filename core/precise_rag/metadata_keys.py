"""Keys in metadata under which this library keeps what it relies on; those of documents are never read."""

from collections.abc import Mapping
from typing import Any

FACTS_KEY = "precise"
"""The facts about a piece, see `precise_rag.facts`."""

LAYOUT_KEY = "precise_layout"
"""What a LlamaIndex node has besides its text and metadata, in an index."""

SOURCE_KEY = "precise_object"
"""The framework object that became a candidate, in the candidate's metadata."""

SECTION_KEY = "section"
"""The titles and headings above an excerpt, where a prompt is to show them: not ours if a user wrote it."""

PAGES_KEY = "pages"
"""Where the pages of a document begin, as `read_documents` writes it; it is not for models."""

_OWN_KEYS = frozenset({FACTS_KEY, LAYOUT_KEY, SOURCE_KEY})


def without_own_keys(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a file or of a framework's document without our keys."""
    return {key: value for key, value in metadata.items() if key not in _OWN_KEYS}
