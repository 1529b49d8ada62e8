"""Word pieces: the tokenizer of the small model, and its training."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Self

from precise_rag.encoders.token_ids import TokenIds

UNKNOWN_PIECE = "[UNK]"
MAX_READ = 128
"""Pieces of a sentence that are read; later ones are only counted."""
_SINGLE = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\U0001f000-\U0003ffff"
)
_PUNCTUATION = r"!-/:-@\[-`{-~¡-¿×÷‐-⁯←-⯿⸀-⹿、-〿！-／：-＠［-｠"
_WORD = re.compile(rf"[^\s{_PUNCTUATION}{_SINGLE}]{{1,64}}|\S")
_CACHED_WORDS = 2**18


def split_words_and_marks(text: str) -> list[str]:
    """Split text into lower-case words, marks, and letters of scripts without spaces."""
    return _WORD.findall(text.lower())


class WordPieces(dict[str, tuple[int, ...]]):
    """Mapping from words to the ids of their pieces; safe to share between threads.

    A word is split from the left into the longest pieces of the vocabulary; "##" marks those inside a
    word. The mapping is a cache, filled on demand.

    pieces: the vocabulary; the id of a piece is its place. It must have "[UNK]".
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        super().__init__()
        self.pieces = tuple(pieces)
        self._ids = {piece: number for number, piece in enumerate(self.pieces)}
        self._unknown = (self._ids[UNKNOWN_PIECE],)
        self._longest = max(map(len, self.pieces))

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= _CACHED_WORDS:
            self.clear()
        ids: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                number = self._ids.get(mark + word[start:end])
                if number is not None:
                    break
            else:
                number, end = self._unknown[0], start + 1
            ids.append(number)
            start = end
        pieces = self[word] = tuple(ids)
        return pieces

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[str, ...]]]:
        return type(self), (self.pieces,)

    def encode(self, texts: Iterable[str]) -> TokenIds:
        """Return the pieces of texts, at most MAX_READ of each; a text without words is one unknown piece."""
        pieces = (
            list(chain.from_iterable(map(self.__getitem__, split_words_and_marks(text)))) or [*self._unknown]
            for text in texts
        )
        return TokenIds.joined([row[:MAX_READ] for row in pieces])


def train_word_pieces(texts: Iterable[str], size: int) -> WordPieces:
    """Train a vocabulary of `size` word pieces: [UNK], the letters, and longer pieces by frequency.

    Words with a letter outside the `size // 5` commonest are ignored. Equal texts give equal pieces:
    the letters are numbered here, because the tokenizers library numbers them in the order it sees them.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    counts = Counter(chain.from_iterable(map(split_words_and_marks, texts)))
    letters: Counter[str] = Counter()
    for word, n in counts.items():
        for letter in word:
            letters[letter] += n
    alphabet = sorted(letters, key=lambda letter: (-letters[letter], letter))[: size // 5]
    inside = {letter for word in counts for letter in word[1:]}.intersection(alphabet)
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN_PIECE))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[UNKNOWN_PIECE, *sorted(alphabet), *sorted(f"##{letter}" for letter in inside)],
        min_frequency=2,
        show_progress=False,
    )
    known = set(alphabet)
    repeated = (f"{word} " * min(n, 1000) for word, n in sorted(counts.items()) if known.issuperset(word))
    tokenizer.train_from_iterator(repeated, trainer)
    ids: dict[str, int] = tokenizer.get_vocab()
    return WordPieces(sorted(ids, key=ids.__getitem__))
