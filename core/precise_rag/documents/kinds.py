"""What the name of a file says about its content."""

import re
from typing import Literal

Kind = Literal["text", "markup", "code", "manual", "records", "json", "table", "converted"]
"""text: read as it is. markup: the same, with headings. code: source code or settings, read as it is.
manual: the source of a manual page, if its first line says so. records: JSON Lines. json: one JSON value.
table: rows of values. converted: needs a converter."""

RECORDS = (".jsonl", ".jsonl.gz", ".ndjson")
_SHEETS = (".xlsx", ".xlsb", ".xls", ".ods")
CONVERTED = (".html", ".htm", ".xhtml", ".pdf", ".docx", ".odt", ".rtf", *_SHEETS, ".pptx", ".epub", ".ipynb")
ARCHIVES = (".docx", ".odt", ".xlsx", ".xlsb", ".ods", ".pptx", ".epub")
"""Converted files that are zip archives."""
BINARY = (".pdf", ".xls", ".rtf")
"""Other converted files whose bytes are no text in one encoding."""
TRAINING = (".txt", ".md", ".jsonl", ".jsonl.gz")
"""What a segmentation model can be trained on."""

_MARKUP = ".md .markdown .mdown .mkd .mkdn .mdx .qmd .rmd .rst .rest"
_TEXT = ".txt .text .log .adoc .asciidoc .org .tex .srt .vtt"
_CODE = (
    ".bash .bat .c .cc .cfg .clj .cmake .conf .cpp .cs .css .cxx .dart .el .erl .ex .exs .f90 .fs .go "
    ".gradle .graphql .groovy .h .hh .hpp .hs .ini .java .jl .js .jsx .kt .kts .less .lisp .lua .m .mjs "
    ".ml .mm .nim .pas .php .pl .pm .proto .ps1 .py .pyi .pyx .r .rb .rs .sass .scala .scm .scss .sh .sql "
    ".svelte .swift .tcl .tf .toml .ts .tsx .vb .vue .xml .yaml .yml .zig .zsh"
)
_NAMES = "authors changelog contributing copying dockerfile license makefile news notice readme todo"
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(_MARKUP.split(), "markup"),
    **dict.fromkeys(_TEXT.split(), "text"),
    **dict.fromkeys(_CODE.split(), "code"),
    **dict.fromkeys(RECORDS, "records"),
    ".json": "json",
    ".csv": "table",
    ".tsv": "table",
    **dict.fromkeys(CONVERTED, "converted"),
}

_MANUAL = re.compile(r".\.(?:[1-8][a-z]{0,4}|man)(?:\.gz)?\Z")
"""The end of the name of a manual page: the section and what it is about."""

READABLE = (
    "text, Markdown, reStructuredText, HTML, PDF, Word (.docx), OpenDocument (.odt, .ods), Rich Text (.rtf), "
    "Excel (.xlsx, .xls), PowerPoint (.pptx), EPUB, CSV, JSON, JSON Lines (.jsonl, .jsonl.gz), manual pages, "
    "notebooks or source code"
)
"""The kinds of files that can be read, in words."""


def kind_of(name: str) -> Kind | None:
    """Return the kind of a file by its name; None if it cannot be read."""
    lower = name.lower()
    if lower.endswith(".jsonl.gz"):
        return "records"
    stem, dot, last = lower.rpartition(".")
    if _MANUAL.search(lower):
        return "manual"
    if dot and stem:
        return _KINDS.get(f".{last}")
    return "text" if lower in _NAMES.split() else None
