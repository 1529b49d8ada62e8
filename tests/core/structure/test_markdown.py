"""Markdown, and what looks like it."""

import pytest

from precise_rag.structure import read_structure
from support.structures import kinds

MARKDOWN = """\
# Eels of the *[Brandt](brandt.md)* estuary

The eels come in May. They leave
in June.

- the first trap

  has a lid
  1. a hook
- the second trap:
  ```text
  oak

  wicker
  ```

> Ilse counts them.

| trap | eels |
|------|------|
| oak  | 7    |

**In winter**

Nothing moves.

Setext
------
<h3>By hand</h3>
"""


def test_markdown_also_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_structure(MARKDOWN)
    assert found.format == "markdown"
    assert kinds(found) == [
        *("heading1", "paragraph", "item1", "item1", "item2", "item1", "code", "quote", "table"),
        *("heading6", "paragraph", "heading2", "heading3"),
    ]
    path = found.heading_path(MARKDOWN.index("Nothing"))
    assert path == ("Eels of the Brandt estuary", "In winter")
    assert found.heading_path(MARKDOWN.index("Setext")) == ("Eels of the Brandt estuary",)
    text = f"{MARKDOWN}\n" * 9
    whole = read_structure(text).blocks
    monkeypatch.setattr("precise_rag.structure.markdown._PART", 700)
    assert read_structure(text).blocks == whole


def test_numbered_titles_of_markdown() -> None:
    text = "# Ferry\n\n1. Boarding\n\nGo aboard.\n\n2. Fares\n\n- three for a zone\n\n1. pay\n2. sit down\n"
    found = read_structure(text, "markdown")
    assert kinds(found) == ["heading1", "heading6", "paragraph", "heading6", "item1", "item1", "item1"]
    assert found.heading_path(text.index("- three")) == ("Ferry", "2. Fares")
