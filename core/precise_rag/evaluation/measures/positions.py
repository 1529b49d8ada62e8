"""Positions of spans in a collection, so that the spans of any two splitters can be compared exactly.

The documents are laid end to end. A position counts visible characters only, because splitters differ
in the white space that they keep. Tokens come from one tokenisation of each whole document, so a token
costs the same for every splitter.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from precise_rag.encoders.packaged import MINILM, packaged_minilm
from precise_rag.errors import InputError, ModelError
from precise_rag.types import Document, IntArray

_SPACES = np.array([code for code in range(0x3001) if chr(code).isspace()], dtype=np.uint32)
_WORD = re.compile(r"\w+|[^\w\s]")

TokenFinder = Callable[[str], IntArray]
"""Function from a text to the (n,) start offsets of its tokens, ascending."""


class Located(Protocol):
    """Anything with a span in a document, such as Chunk, Candidate and Evidence."""

    @property
    def doc_id(self) -> str:
        """Id of the document."""

    @property
    def start(self) -> int:
        """Offset of the first character, in code points."""

    @property
    def end(self) -> int:
        """Offset after the last character."""


class Positions:
    """A collection of documents as one line of visible characters and tokens.

    documents: the collection.
    tokenizer: counts the tokens of budgets. "auto" (default: the WordPiece of all-MiniLM-L6-v2), "words"
        (runs of letters and digits, and single marks), the path of a tokenizer.json, or a function from a
        text to its tokens' start offsets.
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

    def locate(self, spans: Sequence[Located]) -> IntArray:
        """Return the (n, 2) positions where the spans start and end.

        Raises InputError for a document that is not in the collection and for offsets outside it.
        """
        places = np.empty((len(spans), 2), dtype=np.int64)
        for row, span in enumerate(spans):
            visible = self._visible.get(span.doc_id)
            if visible is None:
                raise InputError(f"document {span.doc_id!r} is not in the collection being evaluated")
            if not 0 <= span.start <= span.end < len(visible):
                raise InputError(
                    f"offsets {span.start}-{span.end} do not fit document {span.doc_id!r} "
                    f"of {len(visible) - 1} characters"
                )
            places[row] = visible[span.start], visible[span.end]
        return places

    def tokens_before(self, places: IntArray) -> IntArray:
        """Return how many tokens start before each position; differences count the tokens of spans."""
        return np.searchsorted(self.token_starts, places).astype(np.int64)

    def count_tokens(self, spans: Sequence[Located]) -> IntArray:
        """Return the (n,) token counts of the spans."""
        before = self.tokens_before(self.locate(spans))
        return before[:, 1] - before[:, 0]


def _visible_before(text: str) -> IntArray:
    """Return the (len(text) + 1,) counts of visible characters before each offset."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.concatenate(([0], np.cumsum(~np.isin(codes, _SPACES)))).astype(np.int64)


def _load_finder(tokenizer: str | Path | TokenFinder) -> tuple[str, TokenFinder]:
    if callable(tokenizer):
        return getattr(tokenizer, "__name__", "custom"), tokenizer
    if tokenizer == "words":
        return "words", _word_starts
    if tokenizer != "auto":
        return str(tokenizer), _from_file(Path(tokenizer))
    return MINILM, _from_file(packaged_minilm() / "tokenizer.json")


def _word_starts(text: str) -> IntArray:
    return np.array([match.start() for match in _WORD.finditer(text)], dtype=np.int64)


def _from_file(path: Path) -> TokenFinder:
    if not path.is_file():
        raise ModelError(
            f"{path}: no such tokenizer file; pass the path of a tokenizer.json, 'auto' or 'words'"
        )
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def find_tokens(text: str) -> IntArray:
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets
        return np.array([start for start, _ in offsets], dtype=np.int64)

    return find_tokens
