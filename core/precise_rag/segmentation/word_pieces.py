"""The small model's own word pieces: a vocabulary trained on the text it is for, read with a cache."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from precise_rag.types import IntArray

UNKNOWN_PIECE = "[UNK]"
MAX_READ = 128
"""Later pieces of a sentence are counted, but not read."""

_SINGLE = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\U0001f000-\U0003ffff"
)
_PUNCTUATION = r"!-/:-@\[-`{-~¡-¿×÷‐-⁯←-⯿⸀-⹿、-〿！-／：-＠［-｠"
_WORD = re.compile(rf"[^\s{_PUNCTUATION}{_SINGLE}]{{1,64}}|\S")
_CACHED_WORDS = 2**18


def words(text: str) -> list[str]:
    """Lower-cased words; punctuation marks and letters of scripts without spaces stand alone."""
    return _WORD.findall(text.lower())


class WordPieces(dict[str, tuple[int, ...]]):
    """Words to ids of their pieces: the longest that fit from the left, "##" inside a word.

    A cache of the words met, filled on demand; safe to share between threads.
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
        found = self[word] = self._pieces_of(word)
        return found

    def __reduce__(self) -> tuple[type[WordPieces], tuple[tuple[str, ...]]]:
        return WordPieces, (self.pieces,)

    def _pieces_of(self, word: str) -> tuple[int, ...]:
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
        return tuple(ids)

    def rows(self, texts: Iterable[str]) -> tuple[IntArray, IntArray, IntArray]:
        """The pieces of all texts in one row: ids (t,), offsets (n + 1,), counts (n,).

        At most MAX_READ ids a text are given; the counts are of all of them. A text without
        words reads as one unknown piece, and counts one.
        """
        found = [
            list(chain.from_iterable(map(self.__getitem__, words(text)))) or [*self._unknown]
            for text in texts
        ]
        counts = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
        lengths = np.minimum(counts, MAX_READ)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        read = chain.from_iterable(row[:MAX_READ] for row in found)
        return np.fromiter(read, dtype=np.int64, count=int(offsets[-1])), offsets, counts


def train_word_pieces(texts: Iterable[str], size: int) -> WordPieces:
    """The `size` most useful word pieces of `texts`: [UNK], the letters, longer ones by frequency.

    Words with a letter outside the `size // 5` commonest are left out. Equal texts give equal
    pieces: the letters are numbered here, since the library numbers them as they come.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    counts = Counter(chain.from_iterable(map(words, texts)))
    letters: Counter[str] = Counter()
    for word, count in counts.items():
        for letter in word:
            letters[letter] += count
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
    repeated = (
        f"{word} " * min(count, 1000) for word, count in sorted(counts.items()) if known.issuperset(word)
    )
    tokenizer.train_from_iterator(repeated, trainer)
    ids: dict[str, int] = tokenizer.get_vocab()
    return WordPieces(sorted(ids, key=ids.__getitem__))
