"""Sentence splitters: one shell that tiles any text, and three back ends that know languages."""

import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from precise_rag.errors import InputError
from precise_rag.protocols import SentenceSplitter
from precise_rag.sentences.blocks import block_spans
from precise_rag.sentences.punkt import load_punkt
from precise_rag.types import Span

MAX_CHARACTERS = 1000
"""A longer sentence is cut, between words where there are any."""

_RULES = 1
"""Version of what this package adds to a back end; part of every splitter's name."""

_SPACE = re.compile(r"\s+")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_SCRIPTS = (
    ("ja", "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"),
    ("zh", "\u2e80-\u2fdf\u3001-\u3003\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"),
    ("ko", "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"),
    ("ar", "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff"),
    ("he", "\u0590-\u05ff"),
    ("hy", "\u0530-\u058f"),
    ("hi", "\u0900-\u097f"),
    ("bn", "\u0980-\u09ff"),
    ("pa", "\u0a00-\u0a7f"),
    ("gu", "\u0a80-\u0aff"),
    ("or", "\u0b00-\u0b7f"),
    ("ta", "\u0b80-\u0bff"),
    ("te", "\u0c00-\u0c7f"),
    ("kn", "\u0c80-\u0cff"),
    ("ml", "\u0d00-\u0d7f"),
    ("si", "\u0d80-\u0dff"),
    ("th", "\u0e00-\u0e7f"),
    ("lo", "\u0e80-\u0eff"),
    ("bo", "\u0f00-\u0fff"),
    ("my", "\u1000-\u109f"),
    ("ka", "\u10a0-\u10ff"),
    ("am", "\u1200-\u139f"),
    ("km", "\u1780-\u17ff"),
)
_UNCASED = re.compile(f"[{''.join(letters for _, letters in _SCRIPTS)}]")
_LANGUAGES = tuple((language, re.compile(f"[{letters}]")) for language, letters in _SCRIPTS)
_UNCASED_SHARE = 0.2
"""A block with this share of characters in scripts without capitals goes to sentencex."""

SentenceEnds = Callable[[str], Iterable[int]]
"""Offsets in a block after which a new sentence begins."""


@dataclass(frozen=True, slots=True)
class BlockSplitter:
    """Sentences by `ends` within blocks, so that no sentence crosses a blank line or list item."""

    name: str
    ends: SentenceEnds

    def split(self, text: str) -> list[Span]:
        """Spans that tile `text`; none holds white space alone unless the whole text does."""
        spans: list[Span] = []
        start = 0
        for end in self._sentence_ends(text):
            if end > start and not text[start:end].isspace():
                spans.extend(_cut(text, start, end))
                start = end
        if start < len(text):
            last = spans.pop().start if spans else 0
            spans.extend(_cut(text, last, len(text)))
        return spans

    def _sentence_ends(self, text: str) -> Iterator[int]:
        for first, last in block_spans(text):
            block = text[first:last]
            for end in self.ends(block):
                yield first + _skip_space(block, end)
            yield last


def load_sentence_splitter(name: str = "auto", *, path: str | Path | None = None) -> SentenceSplitter:
    """A splitter by name.

    auto: nupunkt for scripts with capitals, sentencex for the others, decided block by block.
    nupunkt, sentencex: one of them for everything. punkt: NLTK's Punkt with its English data,
    which is looked for in `path`, then where NLTK looks, then inside llama-index-core, and never
    downloaded.

    Raises InputError for another name, MissingExtra without NLTK, ModelError without its data.
    """
    if path is not None and name != "punkt":
        raise InputError(f"path is only for the splitter 'punkt', not for {name!r}")
    nupunkt, sentencex = f"nupunkt-{version('nupunkt')}", f"sentencex-{version('sentencex')}"
    if name == "auto":
        return BlockSplitter(f"auto-{_RULES}({nupunkt},{sentencex})", _auto_ends)
    if name == "nupunkt":
        return BlockSplitter(f"{nupunkt}-{_RULES}", _nupunkt_ends)
    if name == "sentencex":
        return BlockSplitter(f"{sentencex}-{_RULES}", _sentencex_ends)
    if name == "punkt":
        library, ends = load_punkt(path)
        return BlockSplitter(f"{library}-{_RULES}", ends)
    raise InputError(f"unknown sentence splitter {name!r}; expected auto, nupunkt, sentencex or punkt")


def _auto_ends(block: str) -> Iterable[int]:
    if block.isascii() or len(_UNCASED.findall(block)) < _UNCASED_SHARE * len(block):
        return _nupunkt_ends(block)
    return _sentencex_ends(block)


def _nupunkt_ends(block: str) -> Iterable[int]:
    return [end for _, end in importlib.import_module("nupunkt").sent_spans(block)]


def _sentencex_ends(block: str) -> Iterable[int]:
    language = "en" if block.isascii() else _language(block)
    readable = _SURROGATES.sub("\ufffd", block)
    boundaries = importlib.import_module("sentencex").get_sentence_boundaries(language, readable)
    return [boundary["end_index"] for boundary in boundaries]


def _language(block: str) -> str:
    """The language whose script has most characters; kana decide for Japanese."""
    counts = {language: len(letters.findall(block)) for language, letters in _LANGUAGES}
    if counts["ja"] * 5 > counts["zh"]:
        counts["ja"] += counts["zh"]
    language = max(counts, key=counts.__getitem__)
    return language if counts[language] else "en"


def _cut(text: str, start: int, end: int) -> Iterator[Span]:
    """The sentence in pieces of at most MAX_CHARACTERS, white space around them not counted."""
    end_of_words = start + len(text[start:end].rstrip())
    while True:
        first = _skip_space(text, start)
        limit = first + MAX_CHARACTERS
        if end_of_words <= limit:
            break
        cut = max(text.rfind(" ", first, limit), text.rfind("\n", first, limit)) + 1
        cut = _skip_space(text, cut or limit)
        yield Span(start, cut)
        start = cut
    yield Span(start, end)


def _skip_space(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return space.end() if space else place
