"""The stock splitters of the frameworks by name, as users have them: with their own default settings."""

from __future__ import annotations

from collections.abc import Callable

from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.evaluation.peers.units import locate_texts
from precise_rag.types import Document, Span

STOCK = {
    "langchain": (
        "langchain_text_splitters",
        (
            "RecursiveCharacterTextSplitter",
            "CharacterTextSplitter",
            "MarkdownTextSplitter",
            "TokenTextSplitter",
        ),
    ),
    "llamaindex": ("llama_index.core.node_parser", ("SentenceSplitter", "TokenTextSplitter")),
}
"""The module and the splitters of each framework, which is also the name of the extra."""

STOCK_NAMES = tuple(f"{framework}:{name}" for framework, (_, names) in STOCK.items() for name in names)


def load_stock_splitter(name: str) -> Callable[[Document], list[Span]]:
    """Return a function from a document to the spans of the chunks that a stock splitter makes of it.

    name: such as "langchain:RecursiveCharacterTextSplitter".
    Raises InputError for an unknown name, MissingExtra if the framework is not installed.
    """
    if name not in STOCK_NAMES:
        raise InputError(f"stock splitter must be one of {', '.join(STOCK_NAMES)}, got {name!r}")
    framework, _, kind = name.partition(":")
    splitter = getattr(require(STOCK[framework][0], extra=framework), kind)()
    return lambda document: locate_texts(document, splitter.split_text(document.text))
