"""What agents read: excerpts, parts of documents, and what a collection holds, as text."""

import json
import secrets
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from precise_rag._extras import require
from precise_rag.documents import place_of
from precise_rag.errors import InputError
from precise_rag.pipeline import PreciseRAG
from precise_rag.titles import joined_titles, new_sections, titles_above
from precise_rag.tokens import estimate_tokens
from precise_rag.types import Candidate, Excerpt, Titles

_LONGEST_TITLES = 60
"""Characters of the headings above an excerpt; of longer ones the innermost are named."""
_DRAWS = 20
"""Marks of a length that are tried before longer ones."""
_LONGEST_READ = 20_000
_MOST_DOCUMENTS = 1_000
_MOST_FIELDS, _MOST_VALUES = 50, 10
_LONGEST_VALUE = 100
_LISTED = 500_000
"""Sentences of a collection whose documents are counted, and read for their languages."""
_SAMPLE, _BEGINNING = 40, 1_000
"""Documents, and characters of each, by which the languages of a collection are told."""
_LEAST_SHARE = 0.1
"""Share of the documents of the sample that a language must have to be named."""


def written(excerpts: Sequence[Excerpt]) -> str:
    """Return excerpts as one text, each below its source; what is as before is not repeated.

    Of the headings, those that the line above an excerpt of the same document named stand as "…". A text
    cannot write such a line: the mark in it is in none of the texts.
    """
    parts = []
    former, open_titles = None, Titles()
    mark = _new_mark([excerpt.text for excerpt in excerpts])
    for number, (excerpt, titles) in enumerate(zip(excerpts, new_sections(excerpts), strict=True), start=1):
        page = place_of(excerpt).page
        is_new = excerpt.doc_id != former
        named = [excerpt.doc_id] * is_new
        named += [f"page {page}"] * (page is not None)
        named += [joined_titles(_after(open_titles if not is_new else (), titles))] * bool(titles)
        former, open_titles = excerpt.doc_id, titles or (() if is_new else open_titles)
        source = " ".join(["; ".join(" ".join(name.split()) for name in named), f"@{excerpt.start}"])
        parts.append(f"{mark}-{number} {source.strip()}\n{excerpt.text.rstrip()}")
    return "\n\n".join(parts)


def _after(above: Titles, titles: Titles) -> Titles:
    """Return the titles with "…" in place of those that are named already, or are too long together."""
    n_left_out = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(above, titles, strict=False)))
    while sum(map(len, titles[n_left_out:])) > _LONGEST_TITLES:
        n_left_out += 1
    n_left_out = min(n_left_out, len(titles) - 1)
    return ("…", *titles[n_left_out:]) if n_left_out > 0 else titles


def _new_mark(texts: Sequence[str]) -> str:
    """Random digits that are in none of the texts: three, or more if need be."""
    n_digits = 3
    while True:
        drawn = (f"{secrets.randbelow(10**n_digits):0{n_digits}}" for _ in range(_DRAWS))
        for mark in drawn:
            if not any(mark in text for text in texts):
                return mark
        n_digits += 1


def source_tokens(piece: Candidate) -> int:
    """Return the tokens of the line above an excerpt, beside its titles."""
    return estimate_tokens(f"482-1 {piece.doc_id}; page 1 @{piece.start}")


def record(excerpt: Excerpt) -> dict[str, Any]:
    """Return an excerpt as JSON values."""
    return {
        "text": excerpt.text,
        "score": round(excerpt.score, 4),
        "document": excerpt.doc_id,
        "page": place_of(excerpt).page,
        "titles": list(titles_above(excerpt)),
        "start": excerpt.start,
        "end": excerpt.end,
    }


def part_of(rag: PreciseRAG, document: str, place: int, around: int) -> str:
    """Return the text around a place of a document, below a line that says where it is."""
    get = getattr(rag.index, "document", None)
    if get is None:
        raise InputError("this index does not keep the texts of its documents; use `search` alone")
    text = get(document).text
    if not 0 <= place <= len(text):
        raise InputError(f"the place must be within 0 and {len(text)}, got {place}")
    around = max(0, min(around, _LONGEST_READ // 2))
    first, last = max(0, place - around), min(len(text), place + around)
    return f"characters {first} to {last} of {len(text)}\n{text[first:last]}"


def described(rag: PreciseRAG, languages: Sequence[str], *, values: bool) -> str:
    """Return what a collection holds: how much, in which languages, and with which metadata.

    values: also the commonest values of each field, counted in a thousand documents at most.
    """
    index: Any = rag.index
    ids = _ids_of(index)
    size = [f"{len(ids):,} documents"] * bool(ids)
    size += [f"{len(index):,} sentences"] * hasattr(index, "__len__")
    parts = [", ".join([*size, *([" and ".join(languages)] * bool(languages))]) or "documents"]
    fields = fields_of(rag)
    if fields and values:
        parts.append("Fields for `filter`, with their commonest values and how many documents have them:")
        parts += [f"- {name}: {', '.join(shown) or 'long values'}" for name, shown in fields.items()]
    elif fields:
        parts.append(f"fields: {', '.join(fields)}")
    return ("\n" if values else "; ").join(parts)


def fields_of(rag: PreciseRAG) -> dict[str, list[str]]:
    """Return the commonest values of each field of metadata, as JSON, with their numbers.

    They are counted in a bounded number of documents; a long value cannot be looked up by hand.
    """
    some_metadata = getattr(rag.index, "some_metadata", None)
    if some_metadata is None:
        return {}
    n_documents = Counter[str]()
    counts: dict[str, Counter[str]] = {}
    for metadata in some_metadata(_MOST_DOCUMENTS):
        for name, value in metadata.items():
            if isinstance(value, str | int | float | bool):
                shown = json.dumps(value, ensure_ascii=False)
                n_documents[name] += 1
                counts.setdefault(name, Counter()).update([shown] * (len(shown) <= _LONGEST_VALUE))
    commonest = [name for name, _ in n_documents.most_common(_MOST_FIELDS)]
    return {
        _one_line(name): [f"{_one_line(value)} ({n})" for value, n in counts[name].most_common(_MOST_VALUES)]
        + ["…"] * (len(counts[name]) > _MOST_VALUES)
        for name in commonest
    }


def languages_of(rag: PreciseRAG) -> list[str]:
    """Return the languages of a collection, commonest first, by a sample of its documents.

    They are codes of ISO 639-1. There are none for an index that does not list its documents, and for a very
    large one.
    """
    index: Any = rag.index
    ids = _ids_of(index) if hasattr(index, "document") else ()
    classify = require("py3langid", extra="mcp").classify
    texts = [index.document(one).text[:_BEGINNING] for one in ids[:: max(1, len(ids) // _SAMPLE)][:_SAMPLE]]
    counts = Counter(str(classify(text)[0]) for text in texts if text.strip())
    return [language for language, n in counts.most_common() if n >= _LEAST_SHARE * counts.total()]


def _ids_of(index: Any) -> Sequence[str]:
    """The ids of the documents of an index; none if it does not list them, or has very many."""
    is_listed = hasattr(index, "document_ids") and hasattr(index, "__len__") and len(index) <= _LISTED
    ids: Sequence[str] = index.document_ids if is_listed else ()
    return ids


def _one_line(text: str) -> str:
    return " ".join(str(text).split())
