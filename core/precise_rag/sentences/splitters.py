"""Sentence splitters: nupunkt or sentencex within the blocks of a text."""

import heapq
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import Any

from precise_rag._data import packaged_text, packaged_toml
from precise_rag.checks import check_text
from precise_rag.protocols import SentenceSplitter
from precise_rag.sentences.block_spans import block_spans
from precise_rag.sentences.false_ends import TAGS, FalseEnds
from precise_rag.sentences.trimming import has_words
from precise_rag.structure import Structure, read_structure
from precise_rag.structure.base64_runs import base64_spans, without_base64
from precise_rag.structure.marks import after_space
from precise_rag.tokens import readable_texts
from precise_rag.types import Span

MAX_CHARACTERS = 1000
"""A longer sentence is cut, between lines or words if possible."""
_RULES = 24
"""Version of the rules in this package; part of every splitter's name."""
_READ, _AHEAD = 2048, 512
"""Characters that a library reads at once, and those of them that are only read for their context.

The libraries take quadratic time on some texts, for instance on a long run of question marks."""
_STOP = re.compile(r"[^\w\s,;()\[\]{}<>|/\\=+*&^%$#@`~'_-]")
_LAST_MARKS = " \n\t\r.!?…。！？:;,\"'”’»)]}*_`"
"""Marks that can end a sentence, and what may stand after its last word. Without a mark before the last word
the libraries need not be asked."""
_MARKS = re.compile(
    r"(?<!។ល)[\u17d4\u17d5]+(?!ល។)|[\u0f0d\u0f0e](?:[^\S\n]*[\u0f0d\u0f0e])*|(?<=[\w»”)])[;\u037e](?=\s)"
)
"""Marks that the libraries do not know: of Khmer, of Tibetan, and the Greek question mark."""
_UNIT = re.compile(
    r"(?:(?<=\d)\s?(?:[kmcdµ][gml]|[gml](?=\.\n))|(?<=\d\.\s)Stock|(?<=[eıiuü]\s)var)\.(?=\s+[A-ZÀ-ÞİА-Я])"
)
"""The end of a sentence in what the libraries take for an abbreviation: "20 kg. Lift", Turkish "var"."""
_GREEK = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")
_SPACED = re.compile(r"[\u0e00-\u0eff]")
"""Letters of Thai and Lao, where a space ends a clause."""
_CLAUSES, _LONG = 60, 200
"""Characters of Thai or Lao after which a space between letters, and after which any space ends a unit."""
_NOTE_MARK = re.compile(r"(?:\[\^[\w-]{1,40}\]|\[{1,2}\w{1,4}\]{1,2}\(#[^()\s]{1,60}\)|[⁰¹²³⁴-⁹]{1,3})(?=\s)")
"""The mark of a note behind a sentence, to which it belongs."""
_TAG, _LINE_END = re.compile(r"</?[A-Za-z][^<>]{0,500}>"), re.compile(r"[\r\n]")
"""A tag of HTML, whose line ends are read as blanks."""
_EMPHASIS = re.compile(r"\*{1,3}|_{1,3}")
_NUMBER_ALONE = re.compile(rf"{TAGS}(?:[^\W\d_]{{0,2}}\d{{1,3}}[a-z]?|[IVXLC]{{2,7}})\.\s*")
"""A number alone, such as "Q1." or "II.", which belongs to the words after it."""
_SPACE = re.compile(r"\s+")
_SCRIPTS = packaged_toml("sentences/scripts.toml")
_UNCASED = re.compile(f"[{''.join(_SCRIPTS.values())}]")
_LANGUAGES = {language: re.compile(f"[{letters}]") for language, letters in _SCRIPTS.items()}
_UNCASED_SHARE = 0.2
"""sentencex splits a block if this share of its characters is in scripts without capital letters."""


@dataclass(frozen=True, slots=True)
class BlockSplitter:
    """A sentence splitter that splits each block of a text by itself.

    No sentence crosses a blank line, heading, list item, speaker's turn or row of a long table. A short table
    or block of code is one; a long one is split into its head and rows, or into stanzas.

    name: name and version.
    """

    name: str

    def split(self, text: str, structure: Structure | None = None) -> list[Span]:
        """Split `text` into spans that cover it.

        structure: of the text; default: it is read. A span has a word, unless the whole text or more than
        1,000 characters of it have none.
        """
        check_text("text", text)
        data = set(base64_spans(text))
        structure = structure or read_structure(text)
        if structure.format == "html":
            text = _TAG.sub(lambda tag: _LINE_END.sub(" ", tag[0]), text)
        ends = {0, *self._sentence_ends(without_base64(text), structure), *chain(*data)}
        spans = map(Span._make, pairwise(sorted(ends)))
        cut = (_evenly(*span) if span in data else _cut(text, *span) for span in spans)
        return list(_with_words(text, chain.from_iterable(cut)))

    def _sentence_ends(self, text: str, structure: Structure) -> Iterator[int]:
        """The ends of all sentences, ascending, each after the white space that follows it."""
        for (first, last), is_sentence in block_spans(text, structure):
            block = text[first:last]
            own = [unit.end() for unit in _UNIT.finditer(block)]
            own += [] if is_sentence or block.isascii() else [*_ends_by_marks(block), *_ends_by_space(block)]
            if is_sentence or (not own and _STOP.search(block.rstrip(_LAST_MARKS)) is None):
                yield last
                continue
            reached = 0
            false_ends = FalseEnds(block)
            for end in heapq.merge(sorted(own), _ends_in_parts(block)):
                mark, closing = _NOTE_MARK.match(block, end), _EMPHASIS.match(block, end)
                if closing and block.count(closing[0], reached, end) % 2:
                    mark = closing
                following = after_space(block, mark.end() if mark else end)
                is_label = following < len(block) and _NUMBER_ALONE.fullmatch(block, reached, end)
                if end > reached and not is_label and not false_ends.has(end, following):
                    reached = following
                    yield first + reached
            if reached < len(block):
                yield last


def _ends_in_parts(block: str) -> Iterator[int]:
    """The sentence ends in a block, which the libraries read in parts of at most _READ characters.

    A part begins where the last sentence of the part before ended, or within that sentence if it is long.
    """
    start = 0
    while len(block) - start > _READ:
        part = block[start : start + _READ]
        sure = _READ - _AHEAD
        sure_ends = [end for end in _ends(part) if 0 < end <= sure]
        yield from (start + end for end in sure_ends)
        last = sure_ends[-1] if sure_ends else 0
        start += last if last >= sure // 2 else part.rfind(" ", sure // 2, sure) + 1 or sure
    yield from (start + end for end in _ends(block[start:]))


def _ends_by_marks(block: str) -> Iterator[int]:
    """Where a mark of Khmer, Tibetan or Greek ends a sentence."""
    is_greek = _is_mostly(_GREEK, block)
    for mark in _MARKS.finditer(block):
        following = after_space(block, mark.end())
        if mark[0] not in ";\u037e" or (is_greek and not block[following : following + 1].islower()):
            yield mark.end()


def _ends_by_space(block: str) -> Iterator[int]:
    """Where a line break or a space ends a unit of Thai or Lao."""
    start = 0
    for space in _SPACE.finditer(block) if _is_mostly(_SPACED, block) else ():
        first, following = space.span()
        length = min(first - start, 2 * (len(block) - following))
        is_between = _SPACED.match(block, first - 1) and _SPACED.match(block, following)
        if "\n" in space[0] or length > _LONG or (is_between and length >= _CLAUSES):
            start = following
            yield start


def _is_mostly(letters: re.Pattern[str], block: str) -> bool:
    found = letters.findall(block)
    return bool(found) and 2 * len(found) > sum(map(str.isalpha, block))


@cache
def load_sentence_splitter() -> SentenceSplitter:
    """Return the sentence splitter: nupunkt for blocks in scripts with capital letters, or else sentencex."""
    from importlib.metadata import version  # takes time, and a search needs none

    libraries = ",".join(f"{library}-{version(library)}" for library in ("nupunkt", "sentencex"))
    return BlockSplitter(f"auto-{_RULES}({libraries})")


def split_structured(text: str, structure: Structure, splitter: SentenceSplitter) -> list[Span]:
    """Split a text whose structure has been read; a splitter that knows no blocks reads the text alone."""
    return splitter.split(text, structure) if isinstance(splitter, BlockSplitter) else splitter.split(text)


def split_sentences(text: str) -> list[Span]:
    """Split text into sentences with the default splitter.

    Returns spans that cover `text` in order; white space after a sentence belongs to it. An empty
    text has no sentences.
    """
    return load_sentence_splitter().split(text)


def _ends(block: str) -> Iterable[int]:
    """The offsets at which the sentences of a block end."""
    is_cased = block.isascii() or len(_UNCASED.findall(block)) < _UNCASED_SHARE * len(block)
    return _nupunkt_ends(block) if is_cased else _sentencex_ends(block)


def _nupunkt_ends(block: str) -> Iterable[int]:
    starts = [start for start, _ in _nupunkt_model().span_tokenize(block)]
    return [*starts[1:], len(block)]


@cache
def _nupunkt_model() -> Any:
    import nupunkt

    model = deepcopy(nupunkt.load("default"))  # which others in the process share
    for word in packaged_text("sentences/no_abbreviations.txt").split():
        model.remove_abbreviation(word)
    return model


def _sentencex_ends(block: str) -> Iterable[int]:
    import sentencex

    (readable,) = readable_texts([block])
    counts = {language: len(letters.findall(block)) for language, letters in _LANGUAGES.items()}
    try:
        boundaries = sentencex.get_sentence_boundaries(max(counts, key=counts.__getitem__), readable)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what Rust raises, as for "Z\u2028." in English
            raise
        return _nupunkt_ends(block)
    return [boundary["end_index"] for boundary in boundaries]


def _with_words(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Join each span without a word to the span before it, or to the next one if it is the first."""
    waiting, is_whole = Span(0, 0), True
    for span in spans:
        own = text[span.start : span.end]
        has = has_words(own)
        may_join = waiting.end and not (has and is_whole)
        if may_join and (own.isspace() or len(text[waiting.start : span.end].strip()) <= MAX_CHARACTERS):
            span, has = Span(waiting.start, span.end), has or is_whole
        elif waiting.end:
            yield waiting
        waiting, is_whole = span, has
    if waiting.end:
        yield waiting


def _evenly(start: int, end: int) -> Iterator[Span]:
    """Cut data into equal pieces of at most MAX_CHARACTERS."""
    n = -((start - end) // MAX_CHARACTERS)
    yield from map(Span._make, pairwise(start + (end - start) * i // n for i in range(n + 1)))


def _cut(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut a sentence into pieces of at most MAX_CHARACTERS, not counting surrounding white space."""
    end_of_words = start + len(text[start:end].rstrip())
    while (limit := after_space(text, start, end) + MAX_CHARACTERS) < end_of_words:
        first, late = limit - MAX_CHARACTERS, limit - MAX_CHARACTERS // 3
        cut = text.rfind("\n", late, limit) + 1 or text.rfind(" ", first, limit) + 1 or limit
        cut = after_space(text, cut, end)
        yield Span(start, cut)
        start = cut
    yield Span(start, end)
