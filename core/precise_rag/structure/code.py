"""The structure of source code: its functions and classes, read by tree-sitter.

A block begins with each function, method and class, and with what stands between them. Above a piece stand
the name of the file, and the first lines of the classes and functions around it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from precise_rag.structure.blocks import BlockStart, Structure, TextFormat, TitleAt
from precise_rag.structure.reading import read_structure

WHOLE_DEFINITION = 600
"""Characters up to which a class is one block with its methods."""
_LONGEST_TITLE = 160
_MOST_ERRORS = 0.2
"""A text of which a larger share cannot be parsed is not code of this language."""
_LONGEST_CODE = 4_000_000
_DEEPEST = 8

_NAME_KEYS = ("file_name", "file_path", "source")
"""Metadata of documents that name their file, in both frameworks and here."""


class _Language(NamedTuple):
    module: str
    definitions: frozenset[str]
    function: str = "language"
    wrappers: frozenset[str] = frozenset()
    """Nodes around a definition that belong to it."""


def _nodes(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SCRIPT = _nodes(
    "function_declaration generator_function_declaration class_declaration abstract_class_declaration "
    "method_definition interface_declaration enum_declaration internal_module"
)
_C = _nodes("function_definition struct_specifier enum_specifier union_specifier")
_LANGUAGES = {
    "python": _Language(
        "tree_sitter_python",
        _nodes("function_definition class_definition"),
        wrappers=_nodes("decorated_definition"),
    ),
    "javascript": _Language("tree_sitter_javascript", _SCRIPT, wrappers=_nodes("export_statement")),
    "typescript": _Language(
        "tree_sitter_typescript", _SCRIPT, "language_typescript", wrappers=_nodes("export_statement")
    ),
    "tsx": _Language("tree_sitter_typescript", _SCRIPT, "language_tsx", wrappers=_nodes("export_statement")),
    "java": _Language(
        "tree_sitter_java",
        _nodes(
            "class_declaration interface_declaration enum_declaration record_declaration method_declaration "
            "constructor_declaration"
        ),
    ),
    "go": _Language("tree_sitter_go", _nodes("function_declaration method_declaration type_declaration")),
    "rust": _Language(
        "tree_sitter_rust",
        _nodes("function_item struct_item enum_item trait_item impl_item mod_item macro_definition"),
    ),
    "c": _Language("tree_sitter_c", _C, wrappers=_nodes("type_definition")),
    "cpp": _Language(
        "tree_sitter_cpp",
        _C | _nodes("class_specifier namespace_definition"),
        wrappers=_nodes("template_declaration type_definition"),
    ),
    "csharp": _Language(
        "tree_sitter_c_sharp",
        _nodes(
            "class_declaration interface_declaration struct_declaration record_declaration enum_declaration "
            "method_declaration constructor_declaration namespace_declaration"
        ),
    ),
    "ruby": _Language("tree_sitter_ruby", _nodes("method singleton_method class module")),
    "php": _Language(
        "tree_sitter_php",
        _nodes(
            "function_definition class_declaration interface_declaration trait_declaration enum_declaration "
            "method_declaration"
        ),
        "language_php",
    ),
    "bash": _Language("tree_sitter_bash", _nodes("function_definition")),
}
_ENDINGS = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "jsx": "javascript",
    "ts": "typescript", "tsx": "tsx", "java": "java", "go": "go", "rs": "rust", "c": "c", "h": "cpp",
    "cc": "cpp", "cpp": "cpp", "cxx": "cpp", "hh": "cpp", "hpp": "cpp", "cs": "csharp", "rb": "ruby",
    "php": "php", "sh": "bash", "bash": "bash",
}  # fmt: skip
"""The ends of file names, and the language that the file is in."""


def language_of(name: str) -> str | None:
    """Return the language of a source file by its name, such as "python"; None for other files."""
    _, dot, ending = name.rpartition(".")
    return _ENDINGS.get(ending.lower()) if dot else None


def has_parser(language: str) -> bool:
    """Check whether the parser of a language is installed (extra "code")."""
    return _grammar(language) is not None


def structure_of(text: str, metadata: Mapping[str, Any], text_format: TextFormat | None = None) -> Structure:
    """Read the structure of a document, which may be source code.

    metadata: of the document; it names the file as both frameworks and `read_documents` do.
    text_format: as for `read_structure`, which reads other documents. It also reads code whose parser is not
        installed, and what cannot be parsed.
    """
    named = (value for key in _NAME_KEYS if isinstance(value := metadata.get(key), str))
    name = next(named, "").replace("\\", "/").rpartition("/")[2]
    if text_format is None and (language := language_of(name)) and len(text) <= _LONGEST_CODE:
        structure = _read_code(text, language, name)
        if structure is not None:
            return structure
    return read_structure(text, text_format)


def _read_code(text: str, language: str, name: str) -> Structure | None:
    """The structure of a source file; None if its language is not installed or it is not in it."""
    grammar = _grammar(language)
    if grammar is None or not text.strip():
        return None
    parser = importlib.import_module("tree_sitter").Parser(grammar)  # of this call: threads cannot share one
    data = text.encode("utf-8", "replace")
    root = parser.parse(data).root_node
    if _error_bytes(root) > _MOST_ERRORS * len(data):
        return None
    reader = _Reader(text, data, _LANGUAGES[language])
    reader.read(root, 0, len(text), (name,))
    starts = sorted({0, *reader.starts})
    blocks: list[BlockStart] = [(start, "code", 0) for start in _filled(text, starts)]
    titles = [TitleAt(-1, (name,)), *reader.titles]
    return Structure.of_titles(text, "text", blocks, titles)


@cache
def _grammar(language: str) -> Any | None:
    about = _LANGUAGES[language]
    try:
        tree_sitter = importlib.import_module("tree_sitter")
        grammar = getattr(importlib.import_module(about.module), about.function)()
    except ImportError:
        return None
    return tree_sitter.Language(grammar)


def _error_bytes(root: Any) -> int:
    """Bytes in parts that cannot be parsed."""
    if not root.has_error:
        return 0
    waiting, n_bytes = [root], 0
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR":
            n_bytes += node.end_byte - node.start_byte
        elif node.has_error:
            waiting.extend(node.children)
    return n_bytes


class _Reader:
    """Finds the blocks of a syntax tree, and what stands above each place."""

    def __init__(self, text: str, data: bytes, language: _Language) -> None:
        self._text = text
        self._language = language
        self._at = _characters(data) if len(data) != len(text) else None
        self.starts: list[int] = []
        self.titles: list[TitleAt] = []

    def read(self, parent: Any, start: int, end: int, above: tuple[str, ...]) -> None:
        """Read the definitions in a node, which has this part of the text."""
        last = start
        for node, first in self._definitions(parent):
            begin, stop = self._line_start(first), self._character(node.end_byte)
            begin = max(begin, last)
            self.starts.append(begin)
            self._read_definition(node, begin, stop, above)
            following = self._next_line(stop)
            self.titles.append(TitleAt(max(following - 1, begin + 1), above))
            if following < end:
                self.starts.append(following)
            last = max(following, last)

    def _read_definition(self, node: Any, begin: int, stop: int, above: tuple[str, ...]) -> None:
        inner = self._inner(node)
        own = (*above, self._signature(inner))
        self.titles.append(TitleAt(begin, own))
        is_small = len(self._text[begin:stop].strip()) <= WHOLE_DEFINITION
        if not is_small and len(above) < _DEEPEST:
            self.read(inner, begin, stop, own)

    def _definitions(self, parent: Any) -> Iterator[tuple[Any, int]]:
        """The outermost definitions in a node, and where each begins with the comments right above it."""
        waiting = list(reversed(parent.children))
        comments_from: int | None = None
        last_row = -2
        while waiting:
            node = waiting.pop()
            if "comment" in node.type or node.type == "attribute_item":
                is_next = comments_from is not None and node.start_point[0] <= last_row + 1
                comments_from = comments_from if is_next else node.start_byte
                last_row = node.end_point[0]
                continue
            if self._is_definition(node):
                is_next = comments_from is not None and node.start_point[0] <= last_row + 1
                first = comments_from if is_next and comments_from is not None else node.start_byte
                yield node, self._character(first)
            elif node.child_count:
                waiting.extend(reversed(node.children))
            comments_from = None

    def _is_definition(self, node: Any) -> bool:
        inner = self._inner(node)
        if inner.type in self._language.definitions:
            return inner.end_point[0] > inner.start_point[0] or inner.child_by_field_name("body") is not None
        return False

    def _inner(self, node: Any) -> Any:
        """The definition in what is around it, such as decorators; the node itself without one."""
        while node.type in self._language.wrappers:
            inside = [
                child
                for child in node.children
                if child.type in self._language.definitions or child.type in self._language.wrappers
            ]
            if not inside:
                return node
            node = inside[-1]
        return node

    def _signature(self, node: Any) -> str:
        body = node.child_by_field_name("body")
        remarks = [child.start_byte for child in node.children if "comment" in child.type]
        ends = [node.end_byte if body is None else body.start_byte, *remarks]
        end = self._character(min(ends))
        words = self._text[self._character(node.start_byte) : end]
        if body is None:
            words = words.partition("\n")[0]
        return " ".join(words.split()).rstrip(" {:")[:_LONGEST_TITLE]

    def _character(self, place: int) -> int:
        return place if self._at is None else int(self._at[place])

    def _line_start(self, place: int) -> int:
        line = self._text.rfind("\n", 0, place) + 1
        return line if self._text[line:place].isspace() or line == place else place

    def _next_line(self, place: int) -> int:
        """Where the next line begins, if nothing else is on this one but marks."""
        line = self._text.find("\n", place)
        line = len(self._text) if line < 0 else line + 1
        return line if len(self._text[place:line].strip(" ;,}\t\r\n")) == 0 else place


def _characters(data: bytes) -> np.ndarray[Any, np.dtype[np.int64]]:
    """(n + 1,) number of the character that begins at each byte of UTF-8, and of characters in all."""
    begins = (np.frombuffer(data, dtype=np.uint8) & 0xC0) != 0x80
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(begins, dtype=np.int64)])


def _filled(text: str, starts: list[int]) -> Iterator[int]:
    """The starts without those of parts that have no word: these belong to the part before."""
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(text)
        if not number or any(map(str.isalnum, text[start:end])):
            yield start
