"""Windows of texts for a reader, and the best span of a window."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from precise_rag.rerank.pairs import CANDIDATE_TOKENS
from precise_rag.types import FloatArray, IntArray, Span

_INSIDE = CANDIDATE_TOKENS - 2
_OVERLAP = 64
"""Tokens that two windows of a long text share."""

_LONGEST = 30
"""Tokens of an answer, at most."""

_FEWEST_WORDS, _MOST_PIECES = 12, 1.6
"""A text of so many words is not read if a word of it has more pieces than this on average."""

PRIOR = 2.0
"""Weight of a sentence's log-probability beside the network's logits."""

LEAST = 1e-4
"""Probability of a sentence, at least."""


class BestSpan(NamedTuple):
    """The likeliest span of a text.

    margin: its log-odds against "no answer here", by the network alone.
    prior: the log-probability of the sentence in which it begins; 0 if that is not known.
    """

    span: Span
    margin: float
    prior: float = 0.0

    @property
    def score(self) -> float:
        """What spans of a question are compared by."""
        return self.margin + PRIOR * self.prior


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A part of a text that is read at once.

    number: of the text. ids: its tokens with the special ones. offsets: (l, 2) of each token in the text.
    opens, closes: (l,) whether an answer may begin or end with a token: not in the middle of a word.
    """

    number: int
    ids: IntArray
    offsets: IntArray
    opens: np.ndarray[Any, Any]
    closes: np.ndarray[Any, Any]

    def best(self, logits: FloatArray, sentences: Mapping[Span, float] = MappingProxyType({})) -> BestSpan:
        """Return the likeliest span.

        logits: (l, 2) of where an answer begins and ends. sentences: of the text, with their probabilities;
        what is in none of them is as improbable as the least.
        """
        prior = self._prior(sentences)
        begins = np.where(self.opens, logits[:, 0] + PRIOR * prior, -np.inf)
        ends = np.where(self.closes, logits[:, 1], -np.inf)
        several = [
            begins[: len(begins) - shift] + ends[shift:] for shift in range(min(_LONGEST, len(begins) - 1))
        ]
        shift = max(range(len(several)), key=lambda number: several[number].max())
        first = int(several[shift].argmax())
        last = first + shift
        span = Span(int(self.offsets[first, 0]), int(self.offsets[last, 1]))
        margin = logits[first, 0] + logits[last, 1] - logits[0].sum()
        return BestSpan(span, float(margin), float(prior[first]))

    def _prior(self, sentences: Mapping[Span, float]) -> FloatArray:
        """Return the (l,) log-probability of the sentence of each token; zeros if none is known."""
        logs = {span: math.log(max(p, LEAST)) for span, p in sentences.items()}
        prior = np.full(len(self.ids), min(logs.values(), default=0.0), dtype=np.float32)
        for (start, end), value in logs.items():
            prior[(self.offsets[:, 0] >= start) & (self.offsets[:, 0] < end)] = value
        return prior


def windows(number: int, text: str, tokenizer: Any) -> Iterator[Window]:
    """Yield the windows of a text that overlap; none if it has no tokens, or is in another language.

    number: of the text. The vocabulary is English: words of other languages fall into more pieces.
    """
    encoded = tokenizer.encode(text, add_special_tokens=False)
    ids, offsets = np.array(encoded.ids, dtype=np.int64), np.array(encoded.offsets, dtype=np.int64)
    n_words = len(set(encoded.word_ids))
    if not len(ids) or (n_words >= _FEWEST_WORDS and len(ids) > _MOST_PIECES * n_words):
        return
    first, last = (tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))
    letters = np.array([text[start].isalnum() and text[end - 1].isalnum() for start, end in offsets])
    inside_word = (offsets[1:, 0] == offsets[:-1, 1]) & letters[1:] & letters[:-1]
    opens, closes = np.append(True, ~inside_word), np.append(~inside_word, True)
    for start in range(0, max(1, len(ids) - _OVERLAP), _INSIDE - _OVERLAP):
        part = slice(start, start + _INSIDE)
        yield Window(
            number,
            np.concatenate([[first], ids[part], [last]]),
            np.pad(offsets[part], ((1, 1), (0, 0))),
            np.pad(opens[part], 1),
            np.pad(closes[part], 1),
        )
