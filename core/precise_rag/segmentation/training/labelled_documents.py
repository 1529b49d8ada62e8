"""Documents whose gaps between sentences are labelled by their paragraphs and sections."""

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from precise_rag.errors import InputError
from precise_rag.segmentation.boundaries import as_heading
from precise_rag.sentences import split_sentences

LabelArray = npt.NDArray[np.int8]
UNKNOWN = -1
"""Label of a gap of which the source says nothing."""
_SUFFIXES = (".txt", ".md", ".jsonl", ".jsonl.gz")
_BLANK_LINES = re.compile(r"(?:\r?\n[ \t]*){2,}")
_DIALOGUE_LENGTH = 1.5
"""Sentences per paragraph; documents with fewer are transcripts, whose paragraphs mark speakers."""
_HEADINGS_SEED = 1
_QUOTES = tuple("\"'“‘«„»—–-")


@dataclass(frozen=True, slots=True)
class LabelledDocument:
    """The n sentences of a document, with the labels of the gaps between them.

    paragraph, section: (n - 1,) int8: 1 if a paragraph or section ends after sentence i, 0 if not,
    UNKNOWN if the source does not say. domain: a group of documents, as in the source.
    """

    id: str
    domain: str
    sentences: tuple[str, ...]
    paragraph: LabelArray
    section: LabelArray


def read_labelled(*paths: str | Path, headings: float = 0.0) -> Iterator[LabelledDocument]:
    """Read labelled documents from files and folders: .jsonl(.gz), .txt and .md.

    A .jsonl record has `"sections": [{"paragraphs": […]}]`, or a `"text"` with blank lines between
    paragraphs, as in text files. Optional fields: `"heading"` of a section, `"unit": "sentence"` if each
    paragraph is one sentence, `"domain"`. Documents of fewer than two sentences, and hidden files of
    folders, are left out.
    headings: share of the documents, by a hash of their ids, whose headings are among the sentences, each
    marked as in Markdown; default 0.
    Raises InputError if a path is missing, a file cannot be read or a record has neither field.
    """
    for path in map(Path, paths):
        for file in _files(path):
            try:
                yield from (d for d in _read(file, headings) if len(d.sentences) > 1)
            except (OSError, UnicodeDecodeError, EOFError) as error:
                raise InputError(f"{file} cannot be read: {error}") from error


def is_held_out(identifier: str, share: float, seed: int = 0) -> bool:
    """Check whether a document is held out; depends only on its id, the share and the seed."""
    digest = hashlib.blake2b(f"{seed}:{identifier}".encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest, "big") < share * 2**32


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"there is no file or folder {path}")
    shown = (f for f in path.rglob("*") if not any(p.startswith(".") for p in f.relative_to(path).parts))
    files = sorted(file for file in shown if file.name.endswith(_SUFFIXES) and file.is_file())
    if not files:
        raise InputError(f"{path} contains no file that ends in {', '.join(_SUFFIXES)}")
    return files


def _read(file: Path, share: float) -> Iterator[LabelledDocument]:
    if file.name.endswith((".txt", ".md")):
        text = file.read_text(encoding="utf-8-sig")
        yield label_sections(file.name, file.suffix[1:], [_BLANK_LINES.split(text)])
        return
    for number, record in _records(file):
        identifier = str(record.get("id", f"{file.name}#{number}"))
        domain = str(record.get("domain", file.name.split(".")[0]))
        if record.get("lang", "en") != "en":
            domain = "multilingual"
        titled = record.get("sections", ()) if is_held_out(identifier, share, _HEADINGS_SEED) else ()
        headings = [str(section.get("heading") or "") for section in titled]
        sections = _sections(record, f"{file}, line {number}")
        yield label_sections(identifier, domain, sections, record.get("unit"), headings=headings)


def _records(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the object of each line of JSON that is not blank."""
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{file}, line {number}: no JSON ({error})") from error
            if not isinstance(record, dict):
                raise InputError(f"{file}, line {number}: must be an object, got {type(record).__name__}")
            yield number, record


def _sections(record: dict[str, Any], place: str) -> list[list[str]]:
    if isinstance(record.get("text"), str) and "sections" not in record:
        return [_BLANK_LINES.split(record["text"])]
    try:
        return [[str(paragraph) for paragraph in section["paragraphs"]] for section in record["sections"]]
    except (KeyError, TypeError) as error:
        raise InputError(
            f'{place}: the record needs "sections" that each have "paragraphs", or a "text"'
        ) from error


def label_sections(
    identifier: str,
    domain: str,
    sections: Iterable[Sequence[str]],
    unit: str | None = None,
    *,
    headings: Sequence[str] = (),
) -> LabelledDocument:
    """Label the gaps of a document given as sections of paragraphs.

    Paragraph ends are UNKNOWN within dialogue, in transcripts and in documents whose paragraphs are
    single sentences: there they mark speakers. Section ends are UNKNOWN if there is only one section.
    unit: "sentence" if each paragraph is one sentence; default: paragraphs are split.
    headings: of the sections, empty if one has none; each becomes a sentence that belongs to what follows.
    """
    sentences: list[str] = []
    gaps: list[tuple[int, int]] = []
    """The labels of the gap before each sentence: of paragraph and section."""
    paragraphs = [[p for p in part if p.strip()] for part in sections]
    titles = [*headings, *[""] * (len(paragraphs) - len(headings))]
    parts = [(title, part) for title, part in zip(titles, paragraphs, strict=True) if part]
    one_section = UNKNOWN if len(parts) < 2 else 0
    n_paragraphs = sum(len(part) for _, part in parts)
    previous = ""
    for title, part in parts:
        first = (1, 1)
        if title.strip():
            gaps.append(first)
            sentences.append(as_heading(title))
            first = (0, one_section)
        for place, text in enumerate(part):
            pieces = [text] if unit == "sentence" else [text[a:b].strip() for a, b in split_sentences(text)]
            spoken = unit == "sentence" or previous.startswith(_QUOTES) or text.startswith(_QUOTES)
            gaps.append((UNKNOWN if spoken else 1, one_section) if place else first)
            gaps += [(0, one_section)] * (len(pieces) - 1)
            sentences += pieces
            previous = text
    paragraph, section = np.array(gaps[1:], dtype=np.int8).reshape(-1, 2).T.copy()
    n_sentences = len(sentences) - sum(bool(title.strip()) for title, _ in parts)
    if unit != "sentence" and n_sentences < _DIALOGUE_LENGTH * n_paragraphs:
        paragraph[:] = UNKNOWN
    return LabelledDocument(identifier, domain, tuple(sentences), paragraph, section)
