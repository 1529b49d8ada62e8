"""Segmenter with a trained boundary model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from precise_rag.checks import check_number, shown
from precise_rag.errors import InputError, ModelError
from precise_rag.protocols import SentenceSplitter
from precise_rag.segmentation.boundaries import BoundaryModel, choose_cuts
from precise_rag.segmentation.long_sentences import CountTokens, cut_long, cut_recounted, inside_words
from precise_rag.segmentation.pretrained import load_model
from precise_rag.segmentation.streaming import (
    check_texts,
    segment_in_processes,
    segment_tables,
    with_progress,
)
from precise_rag.sentences import load_sentence_splitter, paragraph_ids
from precise_rag.types import Chunk, Document, FloatArray, IntArray, SentenceTable, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmenterOptions:
    """Options of a Segmenter.

    threshold: cut where the probability that two sentences belong together is lower; default 0.55.
    max_tokens: limit of every chunk; default 200.
    min_tokens: shorter chunks join a neighbour if max_tokens allows it; default 0.
    paragraphs: blank lines are always boundaries ("hard"), or evidence for one ("soft", default).
    coarse_tokens: first cut into pieces of about this many tokens, as SAGE does with 400; default: not.

    Raises InputError for a value out of range.
    """

    threshold: float = 0.55
    max_tokens: int = 200
    min_tokens: int = 0
    paragraphs: Literal["hard", "soft"] = "soft"
    coarse_tokens: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.threshold, Real) or not 0 < self.threshold < 1:
            raise InputError(f"threshold must be a number between 0 and 1, got {shown(self.threshold)}")
        for name in ("max_tokens", "min_tokens", "coarse_tokens"):
            value = getattr(self, name)
            if not _is_count(value) and not (name == "coarse_tokens" and value is None):
                raise InputError(f"{name} must be a whole number, got {shown(value)}")
        if self.max_tokens < 1:
            raise InputError(f"max_tokens must be at least 1, got {shown(self.max_tokens)}")
        if not 0 <= self.min_tokens <= self.max_tokens:
            raise InputError(
                f"min_tokens must be between 0 and max_tokens ({shown(self.max_tokens)}), "
                f"got {shown(self.min_tokens)}"
            )
        if self.paragraphs not in ("hard", "soft"):
            raise InputError(f'paragraphs must be "hard" or "soft", got {shown(self.paragraphs)}')
        if self.coarse_tokens is not None and self.coarse_tokens < 1:
            raise InputError(f"coarse_tokens must be at least 1 or None, got {shown(self.coarse_tokens)}")


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


class Segmentation(NamedTuple):
    """A document's n sentences, the score of each gap between them, and the cuts into m chunks.

    spans: (n, 2) spans of the sentences; joined, they are the text.
    n_tokens: (n,) tokens of each sentence. paragraphs: (n,) index of each sentence's paragraph.
    scores: (n - 1,) probability that sentences i and i + 1 belong together.
    cuts: (m - 1,) gaps that are cut, ascending. lengths: (m,) tokens of each chunk.
    """

    spans: IntArray
    n_tokens: IntArray
    paragraphs: IntArray
    scores: FloatArray
    cuts: IntArray
    lengths: IntArray


class Segmenter:
    """Splits documents into chunks where the topic changes.

    It can be shared between threads, and pickled.

    model: gives the logits of boundaries; `from_pretrained` loads one. name: for cache keys.
    options: default: `SegmenterOptions()`. splitter: splits text into sentences; default:
    `load_sentence_splitter()`. count_tokens: measures texts against max_tokens and min_tokens;
    default: the model's own tokens.

    Source: SAGE, section IV. Differs: the cuts are chosen together, by dynamic programming, so that
    no chunk is longer than max_tokens; blank lines count as evidence.
    """

    def __init__(
        self,
        model: BoundaryModel,
        *,
        name: str,
        options: SegmenterOptions | None = None,
        splitter: SentenceSplitter | None = None,
        count_tokens: CountTokens | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.options = options or SegmenterOptions()
        self.splitter = splitter or load_sentence_splitter()
        self.count_tokens = count_tokens

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path = "small",
        *,
        device: str | None = None,
        encoder: Any = None,
        splitter: SentenceSplitter | None = None,
        count_tokens: CountTokens | None = None,
        **options: Any,
    ) -> Self:
        """Load a packaged model ("small", "sage-minilm") or one in a folder that `precise train` wrote.

        device: where an encoder runs, such as "cpu"; default: CUDA if there is one.
        encoder: replaces the encoder named in a model that reads sentence vectors.
        splitter, count_tokens: as for `Segmenter`.
        options: fields of SegmenterOptions; they override the model's own defaults.

        Raises ModelError if the model is missing or damaged, InputError for an unknown or bad option.
        """
        model, defaults = load_model(name, device=device, encoder=encoder)
        try:
            SegmenterOptions(**defaults)
        except (TypeError, InputError) as error:
            raise ModelError(f"the options of the model {str(name)!r} are not usable: {error}") from error
        unknown = options.keys() - SegmenterOptions.__dataclass_fields__.keys()
        if unknown:
            raise InputError(
                f"options must be among {', '.join(SegmenterOptions.__dataclass_fields__)}, "
                f"got {', '.join(sorted(unknown))}"
            )
        if "max_tokens" in options and "min_tokens" in defaults:
            defaults["min_tokens"] = min(defaults["min_tokens"], options["max_tokens"])
        chosen = SegmenterOptions(**{**defaults, **options})
        return cls(model, name=str(name), options=chosen, splitter=splitter, count_tokens=count_tokens)

    @property
    def weights_sha256(self) -> str:
        """Checksum of the model's weights, for cache keys."""
        return self.model.weights_sha256

    def segment(self, text: str | Document, table: SentenceTable | None = None) -> list[Chunk]:
        """Split a text into chunks; joined, they are the text. Blank text has none.

        table: the document's sentences, if they exist. A model that reads sentence vectors takes them
        from the table, which must have been made with the model's encoder. Default: computed.
        """
        document = text if isinstance(text, Document) else Document("text", text)
        if not document.text.strip():
            return []
        found = self.explain(document, table)
        edges = [0, *(found.cuts + 1).tolist(), len(found.spans)]
        pieces = [(int(found.spans[i, 0]), int(found.spans[j - 1, 1])) for i, j in pairwise(edges)]
        return [
            Chunk(document.id, start, end, document.text[start:end], length, document.metadata)
            for (start, end), length in zip(pieces, found.lengths.tolist(), strict=True)
        ]

    def explain(self, text: str | Document, table: SentenceTable | None = None) -> Segmentation:
        """Return the sentences, scores and cuts of a text, from which `segment` makes its chunks."""
        body = text.text if isinstance(text, Document) else text
        spans = self.splitter.split(body) if table is None else [Span(*span) for span in table.spans.tolist()]
        sentences = [body[start:end] for start, end in spans]
        if not sentences:
            none = np.zeros(0, dtype=np.int64)
            return Segmentation(none.reshape(0, 2), none, none, none.astype(np.float32), none, none)
        predicted = self.model.predict(sentences, table)
        counts = predicted.n_tokens if self.count_tokens is None else np.asarray(self.count_tokens(sentences))
        paragraphs = paragraph_ids(body, spans)
        gains = gap_gains(predicted.logits, np.diff(paragraphs) > 0, self.options.threshold)
        rows = np.array(spans, dtype=np.int64)
        if counts.max() > self.options.max_tokens:
            rows, counts, owners = cut_long(body, rows, counts, self.options.max_tokens, self._measure)
            inner = np.diff(owners) == 0
            gains = np.where(
                inner, -_INNER_COST, gains[np.minimum(owners[:-1], len(gains) - 1)] if len(gains) else 0
            )
            paragraphs = paragraphs[owners]
        cuts = choose_cuts(
            gains,
            counts,
            max_tokens=self.options.max_tokens,
            min_tokens=self.options.min_tokens,
            forced=self._forced(paragraphs, counts),
        )
        unsure = np.ones(len(gains), np.bool_) if self.count_tokens else inside_words(body, rows)
        cuts, lengths = cut_recounted(
            body, rows, counts, gains, cuts, unsure, self.options.max_tokens, self._measure
        )
        return Segmentation(
            rows, counts, paragraphs, same_scores(gains, self.options.threshold), cuts, lengths
        )

    def segment_many(
        self, texts: Iterable[str | Document], *, show_progress: bool = False, processes: int = 1
    ) -> Iterator[list[Chunk]]:
        """Yield the chunks of each text, in order; only a few texts are in memory at once.

        show_progress: show a progress bar; default False. processes: worker processes; default 1: none.
        """
        check_texts(texts)
        check_number("processes", processes, least=1, whole=True)
        if processes > 1:
            results = segment_in_processes(self, texts, min(processes, 4 * (os.cpu_count() or 1)))
        else:
            results = self._stream(texts)
        yield from with_progress(results, texts) if show_progress else results

    def _stream(self, texts: Iterable[str | Document]) -> Iterator[list[Chunk]]:
        if self.model.encoder is None:
            yield from map(self.segment, texts)
            return
        yield from segment_tables(self, texts, self.model.encoder, self.splitter)

    @property
    def _measure(self) -> CountTokens:
        return self.count_tokens or self.model.count_tokens

    def _forced(self, paragraphs: IntArray, counts: IntArray) -> npt.NDArray[np.bool_]:
        forced = np.zeros(len(counts) - 1, dtype=np.bool_)
        if self.options.paragraphs == "hard":
            forced |= np.diff(paragraphs) > 0
        if self.options.coarse_tokens is not None:
            forced |= np.diff((np.cumsum(counts) - counts) // self.options.coarse_tokens) > 0
        return forced


_INNER_COST = 20.0
"""Cost of a cut inside a sentence: higher than between any two sentences."""

_BREAK_EVIDENCE = 0.25
"""Added to the log-odds of a boundary at a blank line. Low, because the words predict boundaries better
than blank lines do; tuned by the recall of evidence on the development sets."""


def gap_gains(logits: FloatArray, breaks: npt.NDArray[np.bool_], threshold: float) -> FloatArray:
    """Return the (n - 1,) gain of a cut in each gap: log-odds of a boundary minus those at the threshold.

    logits: (n - 1, 2), see BoundaryLogits. breaks: (n - 1,) true at blank lines.
    """
    evidence = logits[:, 0] + np.where(breaks, _BREAK_EVIDENCE, 0)
    gains: FloatArray = (evidence - np.log((1 - threshold) / threshold)).astype(np.float32)
    return gains


def same_scores(gains: FloatArray, threshold: float) -> FloatArray:
    """Return the (n - 1,) probability that two neighbouring sentences belong together: SAGE's score."""
    odds = np.asarray(gains, dtype=np.float64) + np.log((1 - threshold) / threshold)
    scores: FloatArray = (1 / (1 + np.exp(np.clip(odds, -50, 50)))).astype(np.float32)
    return scores
