"""Options of a Segmenter, and what it finds in a document."""

from dataclasses import dataclass
from numbers import Real
from typing import Literal, NamedTuple, get_args

from precise_rag.checks import check_choice, check_number, shown
from precise_rag.errors import InputError
from precise_rag.structure import Structure, TextFormat
from precise_rag.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmenterOptions:
    """Options of a Segmenter.

    threshold: cut where the probability that two sentences belong together is lower; default 0.55.
    max_tokens: limit of every chunk; default 1,024.
    target_tokens: shorter chunks are made only where the topic clearly changes; default 4/5 of max_tokens.
    min_tokens: shorter chunks join a neighbour if max_tokens allows it; default a sixteenth of max_tokens.
    paragraphs: blank lines are always boundaries, except after a heading or lead-in ("hard"), or evidence for
    one ("soft", default).
    coarse_tokens: first cut into pieces of about this many tokens, as SAGE does with 400; default: not.
    text_format: "markdown", "html", "data", "source" or "text"; default: detected from each text.

    Raises InputError for a value out of range.
    """

    threshold: float = 0.55
    max_tokens: int = 1024
    target_tokens: int | None = None
    min_tokens: int | None = None
    paragraphs: Literal["hard", "soft"] = "soft"
    coarse_tokens: int | None = None
    text_format: TextFormat | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.threshold, Real) or not 0 < self.threshold < 1:
            raise InputError(f"threshold must be a number between 0 and 1, got {shown(self.threshold)}")
        check_number("max_tokens", self.max_tokens, least=1, whole=True)
        defaults = {"target_tokens": self.max_tokens * 4 // 5, "min_tokens": self.max_tokens // 16}
        for name, default in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
            check_number(name, getattr(self, name), least=0, most=self.max_tokens, whole=True)
        check_number("coarse_tokens", self.coarse_tokens, least=1, whole=True, none="no first cut")
        check_choice("paragraphs", self.paragraphs, ("hard", "soft"))
        if self.text_format is not None:
            check_choice("text_format", self.text_format, get_args(TextFormat))


CutReason = Literal["heading", "topic", "paragraph", "length", "option", "long sentence"]
"""heading: one begins after the cut. topic: the score is below the threshold. paragraph: one ends, and no
better place keeps the limit. length: the best place that keeps the limit. option: `paragraphs` or
`coarse_tokens` asked for it. long sentence: it is in a sentence longer than max_tokens."""


class Segmentation(NamedTuple):
    """A document's n sentences, the score of each gap between them, and the cuts into m chunks.

    spans: (n, 2) spans of the sentences; joined, they are the text.
    n_tokens: (n,) tokens of each sentence. paragraphs: (n,) index of each sentence's paragraph.
    scores: (n - 1,) probability that sentences i and i + 1 belong together.
    cuts: (m - 1,) gaps that are cut, ascending. lengths: (m,) tokens of each chunk.
    structure: the blocks of the text. blocks: (n,) number of each sentence's block.
    reasons: why each cut was made: "heading", "topic", "paragraph", "length", "option" or "long sentence".
    """

    spans: IntArray
    n_tokens: IntArray
    paragraphs: IntArray
    scores: FloatArray
    cuts: IntArray
    lengths: IntArray
    structure: Structure
    blocks: IntArray
    reasons: tuple[CutReason, ...]
