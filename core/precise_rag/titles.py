"""What stands above a piece of text: the title of its document, and the headings of its sections.

Search, reranking, growth, selection and prompts all read the same tuple of titles, outermost first. It comes
from the index (`Candidate.above`) or else from the metadata of the document:

title, document_title    the document's title; LlamaIndex's TitleExtractor writes the second
precise_fields           "city: Lille": other metadata that a framework shows with a text to its models
header_path              headings of the parts it stands in: a list, or "/Care/Service/" as LlamaIndex's
                         MarkdownNodeParser and our segmenters write them, where a slash in one is \\/
Header 1 … Header 6      the same, as LangChain's MarkdownHeaderTextSplitter and HTMLHeaderTextSplitter
                         write them when they are given these names, or h1 … h6
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from precise_rag.structure import Structure
from precise_rag.structure.marks import COUNTED, counted_word
from precise_rag.types import FIELDS_KEY, Candidate, Excerpt, Titles

HEADER_PATH = "header_path"
"""Metadata key of the headings above a chunk."""
PATH_KEYS = (HEADER_PATH, *(f"{name}{level}" for level in range(1, 7) for name in ("Header ", "h", "H")))
TITLE_KEYS = ("title", "document_title", FIELDS_KEY, *PATH_KEYS)
"""Metadata keys that are read, in this order."""
_LONGEST = 1_000
"""Characters of all titles that are read."""
_NO_TITLES = ("untitled", "(anonymous)", "(unspecified)")  # of files that programs make
_PATHS, _SECTION = ("file_path", "source", "url"), "section"
_LONGEST_FIELD, _LARGEST_FIELD = 200, 1e15
_SLASH = re.compile(r"(?<!\\)/")
_COLUMNS = " | "
"""Between the columns in the head of a table."""
_BETWEEN, _SAVED_BETWEEN = " > ", "\n"


def titles_of(metadata: Mapping[str, Any], keys: Sequence[str] = TITLE_KEYS) -> Titles:
    """Return the titles in the metadata of a document. Values that are no texts are left out."""
    titles: list[str] = []
    for key in keys:
        value = metadata.get(key)
        if isinstance(value, str) and value.strip().casefold() not in _NO_TITLES:
            parts = [part.replace(r"\/", "/") for part in _SLASH.split(value)]
            titles += parts if key == HEADER_PATH else [value]
        elif isinstance(value, list | tuple):
            titles += [item for item in value if isinstance(item, str)]
    return below((), *titles)


def titles_read(metadata: Mapping[str, Any]) -> tuple[Titles, int]:
    """Return the titles in metadata, and how many of them, from the first on, are not headings."""
    return titles_of(metadata), len(titles_of(metadata, TITLE_KEYS[: -len(PATH_KEYS)]))


def joined_fields(metadata: Mapping[str, Any], hidden: Collection[str]) -> str:
    """Return short entries of metadata that are no titles as one line: "city: Lille, year: 1911".

    hidden: their keys are left out. Of a path or an address only the last name is taken.
    """
    fields = []
    for key, value in metadata.items():
        if key in hidden or key in TITLE_KEYS or key == _SECTION:
            continue
        if isinstance(value, str) and len(value) <= _LONGEST_FIELD:
            fields.append(f"{key}: {value.rstrip('/').rpartition('/')[2] if key in _PATHS else value}")
        elif isinstance(value, int | float) and abs(value) < _LARGEST_FIELD:
            fields.append(f"{key}: {value}")
    return ", ".join(fields)


def titles_above(candidate: Candidate) -> Titles:
    """Return the titles above a candidate: those that an index knows, or else those in its metadata."""
    return candidate.above or titles_of(candidate.metadata)


def titles_at_end(candidate: Candidate) -> Titles:
    """Return the titles above the last sentence of a candidate: an excerpt may hold headings itself."""
    sentences = candidate.sentences if isinstance(candidate, Excerpt) else ()
    return titles_above(sentences[-1].candidate if sentences else candidate)


def below(titles: Titles, *further: str) -> Titles:
    """Return titles with further ones below them, each on one line.

    One that is blank or repeated is left out, and so is what follows the 1,000th character of all.
    """
    lines = dict.fromkeys(" ".join(title.split()) for title in (*titles, *further))
    return tuple(filter(None, "\n".join(lines)[:_LONGEST].split("\n")))


def titles_at(
    titles: Titles, metadata: Mapping[str, Any], text: str, structure: Structure, places: Sequence[int]
) -> list[Titles]:
    """Return the titles above places in a piece of text: those above the piece, then those in it.

    titles, metadata: of the piece. The head of a table whose rows the piece begins with ends with them. Below
    a heading of Markdown or HTML of level n, n - 1 headings above the piece hold; below one of other text,
    those above the last that is like it: "2. Rent" ends "1. Term".
    """
    first_end = structure.blocks[0].end if structure.blocks else 0
    is_row = bool(titles) and _COLUMNS in titles[-1] and "|" in text[:first_end]
    _, n_own = titles_read(metadata)
    first = paths_below(titles, structure, n_own)
    later = paths_below(titles[:-1], structure, n_own) if is_row else first
    return [(first if place < first_end else later)(place, place) for place in places]


def paths_below(titles: Titles, structure: Structure, n_own: int = 0) -> Callable[[int, int], Titles]:
    """Return a function that takes the start and the end of a part of a text, and gives the titles above it.

    titles: above the text, see `titles_at`. n_own: how many of them, from the first on, are not headings.
    """
    is_marked = structure.format in ("markdown", "html")
    levels = (b.level if is_marked and b.kind == "heading" else len(titles) + 1 for b in structure.blocks)
    left = [n_own + level - 1 for level in accumulate(levels, min)]

    def path(start: int, end: int) -> Titles:
        number = max(bisect_right(structure.blocks, start, key=lambda block: block.start) - 1, 0)
        kept, own = titles[: left[number]], structure.above_all(start, end)
        same = (n for n, title in enumerate(kept) if n >= n_own and own and _are_alike(title, own[0]))
        return below(kept if is_marked else kept[: max(same, default=None)], *own)

    return path


def _are_alike(title: str, other: str) -> bool:
    """Whether headings may be of one level: by their shapes, or as "Second Night" and "Third Night"."""
    _, _, rest = title.partition(" ")
    return _shape(title) == _shape(other) or (title[:1].isalpha() and other.partition(" ")[2] == rest != "")


def _shape(title: str) -> str:
    """What headings of one level have in common: "part", "1.", "meeting", or that they are in capitals."""
    first = title.split(" ")[0]
    if title.isupper() and first.isalpha():
        return "A"
    counted = COUNTED.match(title)
    return counted_word(counted) if counted else re.sub(r"\d+|\b[IVX]+\b", "1", first).casefold()


def joined_titles(titles: Iterable[str]) -> str:
    """Return titles as one line: "Pump M-7 > Oil"."""
    return _BETWEEN.join(titles)


def sections(pieces: Sequence[Candidate]) -> list[Titles]:
    """Return the titles above each piece, after the source of its document if another one has its title."""
    above = [titles_above(piece) for piece in pieces]
    given = [piece.metadata.get("source") for piece in pieces]
    sources = [source if isinstance(source, str) else "" for source in given]
    owners = (source or piece.doc_id for source, piece in zip(sources, pieces, strict=True))
    firsts = {(owner, titles[0]) for owner, titles in zip(owners, above, strict=True) if titles}
    shared = Counter(title for _, title in firsts)
    return [
        (source, *titles) if source and titles and shared[titles[0]] > 1 else titles
        for source, titles in zip(sources, above, strict=True)
    ]


def new_sections(pieces: Sequence[Candidate]) -> list[Titles]:
    """Return `sections`, with none for a piece that begins below the titles at the end of the one before."""
    ends = [None, *((piece.doc_id, titles_at_end(piece)) for piece in pieces)]
    is_new = [end != (piece.doc_id, titles_above(piece)) for end, piece in zip(ends, pieces, strict=False)]
    return [titles if new else () for titles, new in zip(sections(pieces), is_new, strict=True)]


def saved_titles(titles: Iterable[str]) -> str:
    """Return titles as the text that an index keeps; `read_titles` reads it."""
    return _SAVED_BETWEEN.join(titles)


def read_titles(saved: str) -> Titles:
    """Return the titles that `saved_titles` wrote."""
    return tuple(saved.split(_SAVED_BETWEEN)) if saved else ()


def with_header_path(metadata: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a copy of the metadata, with the path as "header_path" unless it is the path there already."""
    if tuple(path) == titles_of(metadata, PATH_KEYS):
        return {**metadata}
    others = {key: value for key, value in metadata.items() if key != HEADER_PATH}
    written = "/".join(title.replace("/", r"\/") for title in path)
    return others | ({HEADER_PATH: f"/{written}/"} if path else {})
