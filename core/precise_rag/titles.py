"""What the metadata of a document say above its text: its title, and the headings it stands under.

title                    the document's title
header_path              headings of the parts it stands in, as LlamaIndex's MarkdownNodeParser writes them
Header 1 … Header 6      the same, as LangChain's MarkdownHeaderTextSplitter and HTMLHeaderTextSplitter
                         write them when they are given these names
precise_embedded         a text that takes the place of all of these; the LlamaIndex adapter writes the
                         metadata that a node's embedding model sees
"""

from collections.abc import Mapping
from typing import Any

from precise_rag.metadata_keys import EMBEDDED_KEY

TITLE_KEYS = ("title", "header_path", *(f"Header {level}" for level in range(1, 7)))
"""Metadata keys that are read, in this order."""

_LONGEST = 1_000
"""Characters of a title that are read."""

_BETWEEN = " > "


def title_of(metadata: Mapping[str, Any]) -> str:
    """Return the title in the metadata of a document; empty without one.

    Values that are not strings are left out, and so are characters after the 1,000th.
    """
    keys = (EMBEDDED_KEY,) if EMBEDDED_KEY in metadata else TITLE_KEYS
    return joined_titles(*(value for key in keys if isinstance(value := metadata.get(key), str)))


def joined_titles(*titles: str) -> str:
    """Join titles, outermost first, into one text; one that is blank or repeated is left out."""
    stripped = (title.strip(" /\t\r\n") for title in titles)
    return _BETWEEN.join(dict.fromkeys(title for title in stripped if title))[:_LONGEST]


def ends_in_title(titles: str, title: str) -> bool:
    """Check whether `title` is the last one of joined titles."""
    return bool(title) and (titles == title or titles.endswith(_BETWEEN + title))
