"""Splitters by name, for comparison: this library's own, and the stock splitters of both frameworks.

An entry of `SPLITTERS` takes an encoder and options and returns a function from a document to its
units. All splitters share the encoder; lengths are counted in its tokens, or as `counts` says. A framework
is imported when its splitter is first used. To compare a splitter of your own, add an entry.
"""

from collections.abc import Callable, Sequence
from typing import Any

from precise_rag._extras import require
from precise_rag.errors import InputError
from precise_rag.evaluation.units import Unit, locate_texts
from precise_rag.protocols import Encoder
from precise_rag.segmentation import GreedySegmenter, Segmenter
from precise_rag.sentences import split_sentences
from precise_rag.types import Document, Span

Splitter = Callable[[Document], list[Unit]]
"""Splits a document into units, in order."""


def load_splitter(name: str, encoder: Encoder, **options: Any) -> Splitter:
    """Return the splitter `name` with its options.

    Raises InputError for an unknown name or option, and MissingExtra if its library is not installed.
    """
    if name not in SPLITTERS:
        raise InputError(f"splitter must be one of {', '.join(SPLITTERS)}, got {name!r}")
    try:
        return SPLITTERS[name](encoder, **options)
    except TypeError as error:
        raise InputError(f"splitter {name!r}: {error}") from error


def _langchain_recursive(
    encoder: Encoder, chunk_size: int = 200, chunk_overlap: int = 0, counts: str = "encoder"
) -> Splitter:
    """counts: "encoder" for its tokens, "characters" as the framework does."""
    _check_counts(counts, "characters")
    library = require("langchain_text_splitters", extra="langchain")
    length = token_counter(encoder) if counts == "encoder" else len
    splitter = library.RecursiveCharacterTextSplitter(
        chunk_size=chunk_size, chunk_overlap=chunk_overlap, length_function=length
    )
    return from_texts(splitter.split_text)


def _llamaindex_sentence(
    encoder: Encoder, chunk_size: int = 200, chunk_overlap: int = 0, counts: str = "encoder"
) -> Splitter:
    """counts: "encoder" for its tokens, "framework" for those of the framework's tokenizer."""
    _check_counts(counts, "framework")
    library = require("llama_index.core.node_parser", extra="llamaindex")
    own = {"tokenizer": _tokens(encoder)} if counts == "encoder" else {}
    splitter = library.SentenceSplitter(chunk_size=chunk_size, chunk_overlap=chunk_overlap, **own)
    return from_texts(splitter.split_text)


def _check_counts(counts: object, other: str) -> None:
    if counts not in ("encoder", other):
        raise InputError(f'counts must be "encoder" or "{other}", got {counts!r}')


def _llamaindex_window(encoder: Encoder, window_size: int = 3) -> Splitter:
    """Units are sentences; each returns its neighbours too, `window_size` on either side."""
    parsers = require("llama_index.core.node_parser", extra="llamaindex")
    parser = parsers.SentenceWindowNodeParser.from_defaults(window_size=window_size)

    def split(document: Document) -> list[Unit]:
        spans = locate_texts(document, parser.sentence_splitter(document.text))
        return [
            Unit(
                document.id,
                spans[max(0, row - window_size)].start,
                spans[min(len(spans) - 1, row + window_size)].end,
                document.text[start:end],
            )
            for row, (start, end) in enumerate(spans)
        ]

    return split


def _sentences(encoder: Encoder) -> Splitter:
    del encoder
    return lambda document: _units(document, split_sentences(document.text))


def _precise(encoder: Encoder, model: str = "small", **options: Any) -> Splitter:
    del encoder
    return _from_segmenter(Segmenter.from_pretrained(model, **options))


def _precise_greedy(encoder: Encoder, **options: Any) -> Splitter:
    return _from_segmenter(GreedySegmenter(encoder, **options))


SPLITTERS: dict[str, Callable[..., Splitter]] = {
    "langchain-recursive": _langchain_recursive,
    "llamaindex-sentence": _llamaindex_sentence,
    "llamaindex-window": _llamaindex_window,
    "sentences": _sentences,
    "precise": _precise,
    "precise-greedy": _precise_greedy,
}
"""Splitter names of a plan file to functions of an encoder and options."""

OWN_SPLITTERS = ("sentences", "precise", "precise-greedy")
"""Splitters of this library."""


def from_texts(split_text: Callable[[str], Sequence[str]]) -> Splitter:
    """Return a splitter into the texts that a function cuts a text into."""

    def split(document: Document) -> list[Unit]:
        return _units(document, locate_texts(document, split_text(document.text)))

    return split


def _from_segmenter(segmenter: Segmenter | GreedySegmenter) -> Splitter:
    return lambda document: _units(document, [(c.start, c.end) for c in segmenter.segment(document)])


def _units(document: Document, spans: Sequence[tuple[int, int]]) -> list[Unit]:
    units = (Unit(document.id, start, end, document.text[start:end].strip()) for start, end in spans)
    return [unit for unit in units if unit.text]


def token_counter(encoder: Encoder) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text by an encoder."""
    return lambda text: int(encoder.count_tokens([text])[0])


def _tokens(encoder: Encoder) -> Callable[[str], list[int]]:
    return lambda text: [0] * int(encoder.count_tokens([text])[0])


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
