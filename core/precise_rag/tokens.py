"""Text as models read it: without lone surrogates, and its tokens estimated without a tokenizer."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from precise_rag.checks import shown
from precise_rag.errors import InputError
from precise_rag.types import Candidate, IntArray, Message

CountTokens = Callable[[str], int] | Callable[[Sequence[str]], Sequence[int] | IntArray]
"""Function from a text to its length, in tokens or another measure; or from several texts to theirs."""
Counts = Callable[[Sequence[str]], IntArray]
"""Function from n texts to their (n,) lengths, see `counting`."""
_MESSAGE_OVERHEAD = 4
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_PIECE = re.compile(rf"[{_CJK}]|[^\W\u0250-\U0010ffff]{{1,6}}|[^\W\u0000-\u024f{_CJK}]{{1,2}}|[^\w\s]")
_SIGNS = (
    r"\u0300-\u036f\u0591-\u05bd\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3"
)
"""Vowel signs and accents that stand after their letter, which \\w leaves out, and scripts full of them."""
_IN_ENGLISH = re.compile(
    rf"[\u3400-\u9fff]|[\u3040-\u30ff\uac00-\ud7af]{{1,2}}|(?:[^\W{_CJK}]|[{_SIGNS}]){{1,6}}|[^\w\s]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def readable_texts(texts: Sequence[str]) -> Sequence[str]:
    """Return texts that any model and server can read: each lone surrogate becomes U+FFFD.

    A lone surrogate is half of a character, left by a faulty conversion; tokenizers refuse it. Offsets
    stay the same.
    Raises InputError unless `texts` is a sequence of strings.
    """
    if isinstance(texts, str):
        raise InputError("texts must be a list of strings, got str; pass [text]")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return [_SURROGATE.sub("\ufffd", text) for text in texts]
    except TypeError as error:
        raise InputError(f"texts must be strings: {error}") from error
    return texts


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a model's tokenizer makes of `text`.

    Counts one token for every six letters of a Latin word, every two letters of a word in another
    alphabet, each CJK character and each punctuation mark.

    >>> estimate_tokens("Eels, abcdefgh")
    4
    """
    return sum(1 for _ in _PIECE.finditer(text))


def estimate_in_english(text: str) -> int:
    """Estimate how many tokens `text` would have in English: how much it says, in whatever script.

    Counts one token for every six letters of a word, with their signs, every two Hangul or kana, each
    ideograph and each punctuation mark.

    >>> estimate_in_english("Угри, угри"), estimate_tokens("Угри, угри")
    (3, 5)
    """
    return sum(1 for _ in _IN_ENGLISH.finditer(text))


def estimate_token_counts(texts: Sequence[str]) -> IntArray:
    """Estimate the tokens of several texts. Returns (n,) int64."""
    return np.array([estimate_tokens(text) for text in texts], dtype=np.int64)


def counting(count_tokens: CountTokens) -> Counts:
    """Return a function from n texts to their (n,) lengths, of one that counts a text or several.

    Raises InputError if `count_tokens` is not a function, or does not return whole numbers of 0 or more.
    """
    count: Any = count_tokens
    if not callable(count):
        raise InputError(f"count_tokens must be a function of a text, got {shown(count)}")
    try:
        lengths = np.asarray(count(["one", "two three"]))
    except Exception:  # whatever a function of a text does with a list
        lengths = np.zeros(())
    of_several = lengths.shape == (2,) and lengths.dtype.kind in "iu"
    return partial(_counted, count if of_several else partial(map, count))


def _counted(count: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> IntArray:
    counts = np.asarray(list(count(texts)))
    is_whole = counts.shape == (len(texts),) and (counts.dtype.kind in "iu" or not len(texts))
    if not is_whole or counts.min(initial=0) < 0:
        raise InputError(
            f"count_tokens must return a whole number from 0 on, got {shown(counts[:1].tolist())}"
        )
    return counts.astype(np.int64)


def candidate_tokens(candidate: Candidate, count: Callable[[str], int] | None = None) -> int:
    """Return the tokens of a candidate: those that were counted, or else by `count` or `estimate_tokens`."""
    n_tokens = candidate.n_tokens
    return (count or estimate_tokens)(candidate.text) if n_tokens is None else n_tokens


def estimate_prompt_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of a chat prompt, including the overhead of each message."""
    return sum(estimate_tokens(message.content) + _MESSAGE_OVERHEAD for message in messages)
